"""System calls of x86-64, found in the code of the function that makes one."""

from __future__ import annotations

import re

NUMBERS = {"mmap": 9, "mprotect": 10, "munmap": 11, "mremap": 25, "clone": 56, "fork": 57, "vfork": 58}
"""arch/x86/entry/syscalls/syscall_64.tbl."""
_COMPARISON = rb"(?:\x48\x3d....)?"
"""cmp $..., %rax: a probe on it would be single-stepped, on the jump behind it is not."""


def behind_system_call(code: bytes, numbers: tuple[int, ...], most_between: int = 0) -> int | None:
    """Return where a function's code goes on behind the first of these system calls, and behind a comparison after it.

    `most_between`: bytes that may stand between the number (mov $NUMBER, %eax) and the call.
    """
    loads = b"|".join(re.escape(number.to_bytes(4, "little")) for number in numbers)
    between = b".{0,%d}?" % most_between if most_between else b""
    found = re.search(rb"\xb8(?:" + loads + rb")" + between + rb"\x0f\x05" + _COMPARISON, code, re.DOTALL)
    return found.end() if found else None
