"""Lines of CPython's code objects, from their location tables (3.11 and later).

Source of the format: CPython, Objects/locations.md (3.11), InternalDocs/code_objects.md (3.13).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

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


def spans(table: bytes, first_line: int) -> Iterator[tuple[int, int | None]]:
    """Yield (end, line) of each span of instructions, in order; the line is None where the table has none for it.

    Ends where the table ends or breaks off. Instructions are counted in code units of 2 bytes.
    """
    line, end, at = first_line, 0, 0
    try:
        while at < len(table):
            kind, length = table[at] >> 3 & 15, (table[at] & 7) + 1
            if not table[at] & 128:
                return
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
                return
            end += length
            yield end, None if kind == _NO_LOCATION else line
    except IndexError:
        return


def lines_at(table: bytes, first_line: int, instructions: Sequence[int]) -> list[int | None]:
    """Return the line of each instruction; None where the table has none for it, or ends or breaks off before."""
    found = list(spans(table, first_line))
    ends = [end for end, _ in found]
    places = (bisect_right(ends, instruction) for instruction in instructions)
    return [found[place][1] if place < len(found) else None for place in places]


def line_at(table: bytes, first_line: int, instruction: int) -> int | None:
    """Return the line of one instruction."""
    return lines_at(table, first_line, [instruction])[0]
