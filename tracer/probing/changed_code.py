"""Code that a process has changed in its memory: probes in it would be those of other instructions.

The kernel copies an instruction from its file, puts the breakpoint over whatever stands there in memory, and has who
comes to it execute the copy: in the midst of a jump that a hook put there, the process would crash.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from collections.abc import Mapping as Dictionary

from tracer.architecture.current import ARCHITECTURE
from tracer.binaries.open_binaries import OpenBinary
from tracer.model.snapshot import Mapping
from tracer.probing.copied_code import BREAKPOINT
from tracer.procfs.memory import bytes_at
from tracer.procfs.process import is_running, thread_ids

_JUMPS = (b"\xe9", b"\xeb", b"\xff")
"""What a hook puts there. In place of a long nop the kernel itself has a call, as soon as a probe there was hit."""


def is_changed(pid: int, mapping: Mapping, binary: OpenBinary, places: Iterable[int]) -> bool:
    """Tell whether a process's mapping of a binary has other instructions than its file at places (file offsets)."""
    inside = _inside(mapping, places)
    return bool(_those(pid, inside, lambda memory_fd, place: _differs(memory_fd, mapping, binary, place)))


def without_breakpoint(pid: int, mapping: Mapping, binary: OpenBinary, places: Iterable[int]) -> list[int]:
    """Return those of some places (file offsets) where a process's mapping of a binary begins as the file does; a nop
    may have become a call."""
    shift, inside = mapping.start - mapping.file_offset, _inside(mapping, places)
    found = bytes_at(pid, [place + shift for place in inside])
    if found is None:
        return _those(pid, inside, lambda fd, at: os.pread(fd, 1, at + shift) == binary.code_at(at)[:1])
    return [place for place, byte in zip(inside, found, strict=True) if byte == binary.first_byte(place)]


def lacks_breakpoints(
    pid: int, placed: Iterable[tuple[Mapping, OpenBinary, int]], probed: Dictionary[int, Collection[int]]
) -> bool:
    """Tell whether a process has lost breakpoints. `placed`: what it maps; `probed`: where it has some, by binary (file
    offsets)."""
    return any(without_breakpoint(pid, mapping, binary, probed.get(binary.id, ())) for mapping, binary, _ in placed)


def _inside(mapping: Mapping, places: Iterable[int]) -> list[int]:
    size = mapping.end - mapping.start
    return [place for place in places if 0 <= place - mapping.file_offset < size]


def _those(pid: int, places: Collection[int], is_so: Callable[[int, int], bool]) -> list[int]:
    """Return the places of which something is so, asked of the process's memory (a file) and the place; none where that
    cannot be read."""
    if not places:
        return []
    try:
        with open(f"/proc/{pid}/task/{_living_thread(pid)}/mem", "rb", buffering=0) as memory:
            return [place for place in places if is_so(memory.fileno(), place)]
    except (OSError, ValueError, OverflowError):
        return []


def _living_thread(pid: int) -> int:
    """Return a thread by which the memory of a process is to be had: by its first one only while that lives."""
    return next((tid for tid in (pid, *sorted(thread_ids(pid))) if is_running(pid, tid)), pid)


def _differs(memory_fd: int, mapping: Mapping, binary: OpenBinary, place: int) -> bool:
    code = binary.code_at(place)
    first = ARCHITECTURE.decode(code, place, 1)
    wanted = first[0].raw if first else code[:1]
    found = os.pread(memory_fd, len(wanted), mapping.start + place - mapping.file_offset)
    if first and first[0].name == "nop" and found[:1] not in _JUMPS:
        return False
    # A breakpoint is another tracer's or a debugger's, and no change.
    return any(byte not in (was, BREAKPOINT) for was, byte in zip(wanted, found, strict=False))
