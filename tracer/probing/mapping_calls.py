"""The system calls of libc by which a program changes its executable memory, found in libc's code.

Probed behind the call and not at the function's entry: there it is known whether it succeeded, all arguments still
stand in their registers, and the jump that follows is emulated, where the first instruction would be single-stepped.
"""

from __future__ import annotations

import re

from tracer.binaries.open_binaries import OpenBinary

NUMBERS = {"mmap": 9, "mprotect": 10, "munmap": 11, "mremap": 25}
"""Function to its system call (arch/x86/entry/syscalls/syscall_64.tbl). Not pkey_mprotect, by which compilers protect
memory that is in no file: each probe more is one more for every forked child to wait for."""
_FUNCTION_BYTES = 512
_BETWEEN = rb".{0,16}?"
"""What musl puts between the number and the call; the arguments then stand where the call wants them all the same."""
_COMPARISON = rb"(?:\x48\x3d....)?"
"""cmp $..., %rax: a probe on it would be single-stepped, on the jump behind it is not."""


def mapping_calls(binary: OpenBinary) -> list[tuple[int, int]]:
    """Return (file offset behind the system call, its number) of each such function that is found and understood."""
    found = {}
    for name, number in NUMBERS.items():
        offset = binary.file_offset(name)
        if offset is None:
            continue
        call = rb"\xb8" + re.escape(number.to_bytes(4, "little")) + _BETWEEN + rb"\x0f\x05" + _COMPARISON
        match = re.search(call, bytes(binary.image.data[offset : offset + _FUNCTION_BYTES]), re.DOTALL)
        if match:
            found[offset + match.end()] = number
    return sorted(found.items())
