"""Relocation of an object file that a JIT keeps in memory, to where its code stands.

gABI, chapter 4, "Relocation", and the x86-64 psABI, table 4.9. A JIT writes the run-time address of each section that
it loaded into sh_addr; the values of symbols stay relative to their sections, and nothing outside the loaded sections
is relocated.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from tracer.elf.image import ET_EXEC, SHF_ALLOC, SHF_COMPRESSED, SHT_NOBITS, SHT_SYMTAB, Image, Section
from tracer.elf.raw_symbols import SYMBOL

SHT_RELA = 4
_ABSOLUTE_64, _RELATIVE_32, _ABSOLUTE_32, _SIGNED_32, _RELATIVE_64 = 1, 2, 10, 11, 24
_WIDTHS = {_ABSOLUTE_64: 8, _RELATIVE_64: 8, _RELATIVE_32: 4, _ABSOLUTE_32: 4, _SIGNED_32: 4}
_PLACE_RELATIVE = (_RELATIVE_32, _RELATIVE_64)
_RELA = np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<u8")])
_TYPE_AT, _SECTION_TYPE_AT = 16, 4
_FIRST_RESERVED = 0xFF00
"""Section indexes from here on are none (SHN_LORESERVE)."""

_Array = npt.NDArray[np.void]


def relocated(image: Image) -> tuple[bytes, frozenset[str]]:
    """Return an ET_REL image as an executable linked at the addresses in its section headers.

    Symbols get absolute values, those of sections that were not loaded become undefined, and the sections that are
    debug information or call frames are relocated. The names are those of sections with a relocation that is not known
    (they are left as they were, and must not be believed). A damaged table relocates nothing: never raises.
    """
    data = np.frombuffer(bytearray(image.data[:]), np.uint8)
    distrusted = set()
    symbols = _symbols(image, data)
    values = _absolute(image, symbols)
    for table in image.sections:
        if table.type != SHT_RELA:
            continue
        place = image.sections[table.info] if table.info < len(image.sections) else None
        if place is not None and _matters(place) and not _relocate(image, data, table, place, values):
            distrusted.add(place.name)
    symbols["value"] = values
    changed = bytearray(data.tobytes())
    struct.pack_into("<H", changed, _TYPE_AT, ET_EXEC)
    for table in image.sections:
        if table.type == SHT_RELA:  # applied: whoever reads the image must not apply it again
            struct.pack_into("<I", changed, image.header_offset(table.index) + _SECTION_TYPE_AT, 0)
    return bytes(changed), frozenset(distrusted)


def _symbols(image: Image, data: npt.NDArray[np.uint8]) -> _Array:
    """Return the symbol table as a writable view into `data`; empty where there is none."""
    section = next((s for s in image.sections if s.type == SHT_SYMTAB), None)
    if section is None or section.file_offset + section.size > len(data):
        return np.zeros(0, SYMBOL)
    count = section.size // SYMBOL.itemsize
    return data[section.file_offset : section.file_offset + count * SYMBOL.itemsize].view(SYMBOL)


def _absolute(image: Image, symbols: _Array) -> npt.NDArray[np.uint64]:
    """Return the symbols' addresses; those without one become undefined."""
    bases = np.array([s.link_address for s in image.sections] or [0], np.uint64)
    absent = np.array([bool(s.flags & SHF_ALLOC) and not s.link_address for s in image.sections] or [True])
    sections = symbols["section"].astype(np.int64)
    inside = (sections > 0) & (sections < min(len(bases), _FIRST_RESERVED))
    at = np.where(inside, sections, 0)
    gone = inside & absent[at]
    symbols["section"][gone | (~inside & (sections < _FIRST_RESERVED))] = 0
    values: npt.NDArray[np.uint64] = np.where(inside, symbols["value"] + bases[at], symbols["value"])
    return values


def _matters(section: Section) -> bool:
    is_debug = not section.flags & (SHF_ALLOC | SHF_COMPRESSED) and section.name.startswith(".debug_")
    return section.type != SHT_NOBITS and (is_debug or section.name == ".eh_frame")


def _relocate(
    image: Image, data: npt.NDArray[np.uint8], table: Section, place: Section, values: npt.NDArray[np.uint64]
) -> bool:
    """Apply one table; return whether all of it is known and fits."""
    if place.file_offset + place.size > len(data) or len(image.contents(table)) < table.size:
        return False
    entries = np.frombuffer(image.contents(table), _RELA, table.size // _RELA.itemsize)
    inside = (entries["symbol"] < len(values)) & (entries["offset"] < place.size)
    section = data[place.file_offset : place.file_offset + place.size]
    applied = 0
    for kind, width in _WIDTHS.items():
        fits = entries["offset"].astype(np.int64) <= place.size - width
        chosen = entries[inside & fits & (entries["type"] == kind)]
        applied += len(chosen)
        results = values[chosen["symbol"]] + chosen["addend"]
        if kind in _PLACE_RELATIVE:
            results = results - chosen["offset"] - np.uint64(place.link_address)
        places = chosen["offset"].astype(np.int64)[:, None] + np.arange(width)
        section[places] = results.view(np.uint8).reshape(-1, 8)[:, :width]
    return applied == len(entries)
