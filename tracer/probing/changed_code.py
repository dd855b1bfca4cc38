"""Code that a process has changed in its memory: probes in it would be those of other instructions.

The kernel copies an instruction from its file, puts the breakpoint over whatever stands there in memory, and has who
comes to it execute the copy: in the midst of a jump that a hook put there, the process would crash.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from tracer.architecture.current import ARCHITECTURE
from tracer.binaries.open_binaries import OpenBinary
from tracer.model.snapshot import Mapping
from tracer.probing.copied_code import BREAKPOINT

_JUMPS = (b"\xe9", b"\xeb", b"\xff")
"""What a hook puts there. In place of a long nop the kernel itself has a call, as soon as a probe there was hit."""


def is_changed(pid: int, mapping: Mapping, binary: OpenBinary, places: Iterable[int]) -> bool:
    """Tell whether a process's mapping of a binary has other instructions than its file at places (file offsets)."""
    size = mapping.end - mapping.start
    inside = [place for place in places if 0 <= place - mapping.file_offset < size]
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            return any(_differs(memory.fileno(), mapping, binary, place) for place in inside)
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
