"""The system calls of libc by which a program changes its executable memory, found in libc's code.

Probed behind the call and not at the function's entry: there it is known whether it succeeded, all arguments still
stand in their registers, and the jump that follows is emulated, where the first instruction would be single-stepped.
"""

from __future__ import annotations

from tracer.architecture.current import ARCHITECTURE
from tracer.binaries.open_binaries import OpenBinary

NAMES = ("mmap", "mprotect", "munmap", "mremap")
"""Not pkey_mprotect, by which compilers protect memory that is in no file: each probe more is one more for every forked
child to wait for."""
_FUNCTION_BYTES = 512
_BETWEEN = 16
"""Bytes that musl puts between the number and the call, where the arguments stand as the call wants them already."""


def mapping_calls(binary: OpenBinary) -> list[tuple[int, int]]:
    """Return (file offset behind the system call, its number) of each such function that is found and understood."""
    found = {}
    for name in NAMES:
        number, offset = ARCHITECTURE.system_calls[name], binary.file_offset(name)
        if offset is None:
            continue
        code = bytes(binary.image.data[offset : offset + _FUNCTION_BYTES])
        behind = ARCHITECTURE.behind_system_call(code, (number,), _BETWEEN)
        if behind is not None:
            found[offset + behind] = number
    return sorted(found.items())
