"""The forms in which DWARF writes attributes: what stands there, and how long it is.

DWARF 5, sections 7.5.5 and 7.5.6; GNU's two forms for strings and entries in another file (DW_FORM_GNU_ref_alt,
DW_FORM_GNU_strp_alt).
"""

from __future__ import annotations

from tracer.dwarf.leb128 import unsigned

ADDRESS, SDATA, UDATA, IMPLICIT_CONST, FLAG_PRESENT, SEC_OFFSET = 0x01, 0x0D, 0x0F, 0x21, 0x19, 0x17
STRING, STRP, LINE_STRP = 0x08, 0x0E, 0x1F
REF_ADDR, REF_UDATA, LOCLISTX, RNGLISTX = 0x10, 0x15, 0x22, 0x23
DATA = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8}
REFERENCES = {0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8}
"""To an entry of the same unit."""
STRING_INDICES = {0x1A: 0, 0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4}
ADDRESS_INDICES = {0x1B: 0, 0x29: 1, 0x2A: 2, 0x2B: 3, 0x2C: 4}
BLOCKS = {0x0A: 1, 0x03: 2, 0x04: 4, 0x09: 0, 0x18: 0}
"""By the bytes of the index or of the length; 0 for a LEB128."""
FIXED = {
    form: size
    for table in (DATA, REFERENCES, STRING_INDICES, ADDRESS_INDICES)
    for form, size in table.items() if size
} | {ADDRESS: 8, 0x0C: 1, FLAG_PRESENT: 0, 0x1C: 4, 0x1E: 16, 0x20: 8, IMPLICIT_CONST: 0, 0x24: 8}  # fmt: skip
"""Bytes of those that are always as long."""
BY_OFFSET_SIZE = frozenset((STRP, REF_ADDR, SEC_OFFSET, 0x1D, LINE_STRP, 0x1F20, 0x1F21))
"""4 bytes, or 8 in 64-bit DWARF."""
_LEB = frozenset((SDATA, UDATA, REF_UDATA, 0x1A, 0x1B, LOCLISTX, RNGLISTX))


def number_at(data: bytes, at: int, size: int) -> tuple[int, int]:
    """Return an unsigned number of so many bytes, a LEB128 for 0, and where it ends."""
    return (int.from_bytes(data[at : at + size], "little"), at + size) if size else unsigned(data, at)


def skip_form(data: bytes, form: int, at: int, offset_size: int) -> int:
    """Return where an attribute's value that begins at `at` ends; raises ValueError for a form that is not known."""
    if form in FIXED:
        return at + FIXED[form]
    if form in BY_OFFSET_SIZE:
        return at + offset_size
    if form in _LEB:
        return unsigned(data, at)[1]
    if form == STRING:
        return data.index(0, at) + 1
    if form in BLOCKS:
        length, at = number_at(data, at, BLOCKS[form])
        return at + length
    raise ValueError(f"form {form:#x} is not known")
