"""Lines of CPython's code objects, from their location tables (3.11 and later).

Source of the format: CPython, Objects/locations.md (3.11), InternalDocs/code_objects.md (3.13).
"""

from __future__ import annotations

_NO_LOCATION, _LONG, _NO_COLUMNS, _ONE_LINE_2 = 15, 14, 13, 12
_ONE_LINE_0 = 10


def _varint(table: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned number of 6 bits per byte, least significant first, and where it ends."""
    value = shift = 0
    while True:
        byte = table[at]
        at += 1
        value |= (byte & 63) << shift
        shift += 6
        if not byte & 64:
            return value, at


def _signed(value: int) -> int:
    return -(value >> 1) if value & 1 else value >> 1


def line_at(table: bytes, first_line: int, instruction: int) -> int | None:
    """Return the line of an instruction, counted in code units of 2 bytes.

    None where the table has no line for it, or ends or breaks off before.
    """
    line, start, at = first_line, 0, 0
    try:
        while at < len(table):
            kind, length = table[at] >> 3 & 15, (table[at] & 7) + 1
            if not table[at] & 128:
                return None
            at += 1
            if kind in (_LONG, _NO_COLUMNS):
                change, at = _varint(table, at)
                line += _signed(change)
                for _ in range(3 if kind == _LONG else 0):
                    _, at = _varint(table, at)
            elif _ONE_LINE_0 <= kind <= _ONE_LINE_2:
                line += kind - _ONE_LINE_0
                at += 2
            elif kind != _NO_LOCATION:
                at += 1
            if at > len(table):
                return None
            start += length
            if instruction < start:
                return None if kind == _NO_LOCATION else line
    except IndexError:
        return None
    return None
