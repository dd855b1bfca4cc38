"""Lines of functions of Lua 5.4 and later: differences, some absolute ones in between (ldebug.c, luaG_getfuncline)."""

from __future__ import annotations

import struct

_ABSOLUTE = -0x80
"""In place of a difference: see the absolute ones."""
_PAIR = struct.Struct("<ii")


def line_at(differences: bytes, absolute: bytes, defined: int, instruction: int) -> int | None:
    """Return the line of an instruction; None where what is there of the tables does not tell it.

    `absolute`: pairs of instruction and line; `defined`: the line of the function's definition, from which on the
    differences count.
    """
    line, base = defined, -1
    for at, here in _PAIR.iter_unpack(absolute[: len(absolute) // _PAIR.size * _PAIR.size]):
        if at > instruction:
            break
        line, base = here, at
    if base < -1 or instruction < 0 or instruction >= len(differences):
        return None
    for difference in struct.unpack_from(f"{instruction - base}b", differences, base + 1):
        if difference == _ABSOLUTE:
            return None
        line += difference
    return line
