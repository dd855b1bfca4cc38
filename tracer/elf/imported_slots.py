"""The words of a binary that the loader fills in with the addresses of functions, by relocations.

System V ABI, AMD64 supplement, chapter 4: R_X86_64_GLOB_DAT and R_X86_64_JUMP_SLOT of `.rela.dyn` and `.rela.plt`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tracer.elf.image import SHT_DYNSYM, Image, Section

SHT_RELA = 4
_BY_NAME = (6, 7)
_RELA = np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])
_SYMBOL = np.dtype([("name", "<u4"), ("rest", "V20")])


def imported_slots(image: Image) -> Mapping[int, str]:
    """Return the name of the function by the link address of its slot; empty where there are no section headers."""
    symbols = next((section for section in image.sections if section.type == SHT_DYNSYM), None)
    if symbols is None or symbols.link >= len(image.sections):
        return {}
    table = _rows(image, symbols, _SYMBOL)
    strings = bytes(image.contents(image.sections[symbols.link]))
    found: dict[int, str] = {}
    for section in image.sections:
        if section.type != SHT_RELA or section.link != symbols.index:
            continue
        rows = relocations(image, section)
        rows = rows[np.isin(rows["type"], _BY_NAME) & (rows["symbol"] < len(table))]
        for slot, symbol in zip(rows["offset"].tolist(), rows["symbol"].tolist(), strict=True):
            found[slot] = _text(strings, int(table["name"][symbol]))
    return found


def relocations(image: Image, section: Section) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """Return the rows of a section of type SHT_RELA: `offset`, `type`, `symbol`, `addend`."""
    return _rows(image, section, _RELA)


def _rows(image: Image, section: Section, dtype: np.dtype[np.void]) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    contents = bytes(image.contents(section))
    return np.frombuffer(contents, dtype, len(contents) // dtype.itemsize)


def _text(strings: bytes, start: int) -> str:
    end = strings.find(b"\0", start)
    return strings[start : max(end, start)].decode(errors="replace")
