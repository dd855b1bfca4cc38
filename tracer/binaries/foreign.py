"""Foreign programs: ELF files for another word size or another processor, in which nothing can be probed."""

from __future__ import annotations

import struct

from tracer.architecture.current import ARCHITECTURE
from tracer.files.plain_file import read_start

_CLASS, _DATA = 4, 5
"""Bytes of `e_ident` (System V ABI, chapter 4)."""
_CLASS_32, _LITTLE_ENDIAN = 1, 1
_MACHINE = struct.Struct("<18xH")


def why_foreign(path: str) -> str | None:
    """Return why nothing of a program can be probed, as a clause; None where it can, or is no ELF file, or is gone."""
    try:
        header = read_start(path, _MACHINE.size)
    except (OSError, ValueError):
        return None
    if len(header) < _MACHINE.size or not header.startswith(b"\x7fELF"):
        return None
    if header[_CLASS] == _CLASS_32:
        return "a 32-bit program: refleak traces 64-bit ones"
    machine = _MACHINE.unpack(header)[0]
    if header[_DATA] != _LITTLE_ENDIAN or machine != ARCHITECTURE.elf_machine:
        return "a program for another processor"
    return None
