"""Interposers: libraries whose malloc a program's loader finds before the C library's, as electric fence's.

All of the program calls theirs, so theirs is the allocator; that of a library which comes later, or is only loaded by
dlopen, is its own affair (gABI, "Shared Object Dependencies": the order in which symbols are looked up).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tracer.binaries.open_binaries import Binaries, OpenBinary
from tracer.binaries.start_libraries import VARIABLES, StartLibraries
from tracer.elf.symbol_table import STB_LOCAL, STT_FUNC
from tracer.model.preload_names import SONAME
from tracer.procfs.process import executes, variables
from tracer.procfs.roots import root_of

_FAMILY = ("malloc", "free")
_STARTS_PROGRAMS = "__libc_start_main"
"""What the C library defines, whatever its name."""


def defines_malloc(binary: OpenBinary) -> bool:
    """Tell whether a binary's malloc may be called by others."""
    return _defines(binary, "malloc")


def mark_interposers(started: Sequence[OpenBinary]) -> None:
    """Mark those of a program's binaries that are; itself and its loader come first, then libraries in their order."""
    for binary in started[1:]:
        if not binary.is_loader and binary.names.find(_STARTS_PROGRAMS):
            return
        if _may_interpose(binary):
            binary.is_late |= binary.interposes is False
            binary.interposes = True


def judge_mapped(binaries: Binaries, pid: int, mapped: Iterable[OpenBinary]) -> None:
    """Mark those that a process has mapped, each once, by the order in which its program needs them."""
    mapped = list(mapped)
    new = [binary for binary in mapped if binary.interposes is None]
    if any(map(_may_interpose, new)):
        program = next((binary for binary in mapped if binary.image.interpreter and executes(pid, binary.fd)), None)
        if program is not None:
            libraries = StartLibraries(binaries, root_of(pid), variables(pid, VARIABLES))
            mark_interposers([program, *libraries.of(program, _path_of(pid))])
    for binary in new:
        binary.interposes = bool(binary.interposes)


def _may_interpose(binary: OpenBinary) -> bool:
    return not binary.is_loader and binary.image.soname != SONAME and all(_defines(binary, name) for name in _FAMILY)


def _defines(binary: OpenBinary, name: str) -> bool:
    return any(symbol.kind == STT_FUNC and symbol.binding != STB_LOCAL for symbol in binary.names.find(name))


def _path_of(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/exe").readlink())
    except OSError:
        return ""
