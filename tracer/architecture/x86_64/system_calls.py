"""System calls of x86-64, found in the code of the function that makes one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracer.architecture.instruction import NumberedCall
from tracer.architecture.x86_64.instructions import lines_of, place_beside_code
from tracer.late_patterns import late_pattern

NUMBERS = {
    "mmap": 9, "mprotect": 10, "munmap": 11, "mremap": 25, "clone": 56, "fork": 57, "vfork": 58, "exit_group": 231,
    "clone3": 435,
}  # fmt: skip
"""arch/x86/entry/syscalls/syscall_64.tbl."""
_COMPARISON = rb"(?:\x48\x3d....|\x48\x85\xc0)?"
"""cmp $..., %rax, or test %rax, %rax: a probe on it would be single-stepped, on the jump behind it is not."""
_TO_FUNCTION, _TO_KERNEL = b"\xbf", b"\xb8"
"""mov $..., %edi, as `syscall` of libc wants a number, or %eax."""
_LOADED = {_TO_FUNCTION: late_pattern(r"[er]?di[l]?\b"), _TO_KERNEL: late_pattern(r"[er]?a[xlh]\b")}
_BETWEEN_BYTES = 96
_SYSTEM_CALL = b"\x0f\x05"
EXIT_OF_GO = bytes.fromhex("8b7c2408 b8e7000000 0f05 c3"), 4
"""The code of Go's runtime.exit (sys_linux_amd64.s), of which programs that are linked with -s have no name, and where
in it the number is loaded: mov 8(%rsp), %edi; mov $231, %eax; syscall; ret."""
_ENDS = ("call", "ret", "hlt", "ud2", "int3", "syscall")


def behind_system_call(code: bytes, numbers: tuple[int, ...], most_between: int = 0) -> int | None:
    """Return where a function's code goes on behind the first of these system calls, and behind a comparison after it.

    `most_between`: bytes that may stand between the number (mov $NUMBER, %eax) and the call.
    """
    loads = b"|".join(re.escape(number.to_bytes(4, "little")) for number in numbers)
    between = b".{0,%d}?" % most_between if most_between else b""
    found = re.search(rb"\xb8(?:" + loads + rb")" + between + rb"\x0f\x05" + _COMPARISON, code, re.DOTALL)
    return found.end() if found else None


def numbered_calls(
    code: bytes, address: int, numbers: tuple[int, ...], *, by_function: bool, by_instruction: bool
) -> Iterator[NumberedCall]:
    """Yield the calls that follow, in a straight line, where one of these numbers is loaded for them; and what looks
    like one, in the midst of instructions or in data."""
    if by_function:
        for at in _loads(code, _TO_FUNCTION, numbers):
            yield from _call_behind(code, address, at, _TO_FUNCTION)
    if by_instruction:
        for at in _loads(code, _TO_KERNEL, numbers):
            if code.find(_SYSTEM_CALL, at, at + _BETWEEN_BYTES + len(_SYSTEM_CALL)) >= 0:
                yield from _call_behind(code, address, at, _TO_KERNEL)


def _loads(code: bytes, load: bytes, numbers: tuple[int, ...]) -> Iterator[int]:
    """Yield where one of these numbers is loaded. An expression takes a third of the time of a search for each."""
    words = b"|".join(re.escape(number.to_bytes(4, "little")) for number in numbers)
    for found in re.finditer(re.escape(load) + b"(?:" + words + b")", code, re.DOTALL):
        yield found.start()


def _call_behind(code: bytes, address: int, at: int, load: bytes) -> Iterator[NumberedCall]:
    start = address + at
    lines = lines_of(code[at : at + _BETWEEN_BYTES], start)
    next(lines, None)
    for line in lines:
        if line.name.startswith(("j", "loop")) or line.name in _ENDS:
            if line.name == ("call" if load == _TO_FUNCTION else "syscall"):
                number = int.from_bytes(code[at + 1 : at + 5], "little")
                yield NumberedCall(number, start, line.end, load == _TO_FUNCTION, line.target, place_beside_code(line))
            return
        if _LOADED[load].match(line.operands):
            return
