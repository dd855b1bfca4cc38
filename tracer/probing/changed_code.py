"""Code that a process has changed in its memory: probes in it would be those of other instructions.

The kernel copies an instruction from its file, puts the breakpoint over whatever stands there in memory, and has who
comes to it execute the copy: in the midst of a jump that a hook put there, the process would crash.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from tracer.architecture.current import ARCHITECTURE
from tracer.binaries.open_binaries import OpenBinary
from tracer.model.snapshot import Mapping
from tracer.probing.copied_code import BREAKPOINT

_TRAP = bytes([BREAKPOINT])
_JUMPS = (b"\xe9", b"\xeb", b"\xff")
"""What a hook puts there. In place of a long nop the kernel itself has a call, as soon as a probe there was hit."""


def is_changed(pid: int, mapping: Mapping, binary: OpenBinary, places: Iterable[int]) -> bool:
    """Tell whether a process's mapping of a binary has other instructions than its file at places (file offsets)."""
    return _any_place(pid, mapping, places, lambda memory_fd, place: _differs(memory_fd, mapping, binary, place))


def lacks_breakpoint(pid: int, mapping: Mapping, places: Iterable[int]) -> bool:
    """Tell whether a process's mapping has something else than a breakpoint at one of some places (file offsets)."""
    shift = mapping.start - mapping.file_offset
    return _any_place(pid, mapping, places, lambda memory_fd, place: os.pread(memory_fd, 1, place + shift) != _TRAP)


def _any_place(pid: int, mapping: Mapping, places: Iterable[int], is_so: Callable[[int, int], bool]) -> bool:
    """Tell whether something is so of the process's memory (a file) and a place that is in the mapping; no where that
    cannot be read."""
    size = mapping.end - mapping.start
    inside = [place for place in places if 0 <= place - mapping.file_offset < size]
    if not inside:
        return False
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            return any(is_so(memory.fileno(), place) for place in inside)
    except (OSError, ValueError, OverflowError):
        return False


def _differs(memory_fd: int, mapping: Mapping, binary: OpenBinary, place: int) -> bool:
    code = binary.code_at(place)
    first = ARCHITECTURE.decode(code, place, 1)
    wanted = first[0].raw if first else code[:1]
    found = os.pread(memory_fd, len(wanted), mapping.start + place - mapping.file_offset)
    if first and first[0].name == "nop" and found[:1] not in _JUMPS:
        return False
    # A breakpoint is another tracer's or a debugger's, and no change.
    return any(byte not in (was, BREAKPOINT) for was, byte in zip(wanted, found, strict=False))
