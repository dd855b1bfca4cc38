"""Where PUC-Lua keeps its calls: offsets in its structs by version.

Sources: lobject.h, lstate.h of Lua 5.1.5, 5.2.4, 5.3.6 and 5.4.6, for pointers of 8 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_IDENT = re.compile(rb"\$Lua(?:Version)?: Lua 5\.([1-4])[. ]")
"""lua_ident of lapi.c. Lua 5.0 and LuaJIT have none, or another."""

LAYOUTS: Mapping[str, Mapping[str, int]] = {
    "Lua 5.1": {
        "status": 10, "call": 40, "base_call": 80, "saved_pc": 48, "call_size": 40, "function": 8, "previous": 0,
        "call_pc": 24, "proto": 32, "is_c": 10, "code": 24, "lines": 40, "line_count": 84, "absolute": 0,
        "absolute_count": 0, "defined": 96, "source": 64,
    },
    "Lua 5.2": {
        "status": 10, "call": 32, "base_call": 0, "saved_pc": 0, "call_size": 0, "function": 0, "previous": 16,
        "call_pc": 56, "proto": 24, "is_c": 0, "code": 24, "lines": 40, "line_count": 92, "absolute": 0,
        "absolute_count": 0, "defined": 104, "source": 72,
    },
    "Lua 5.3": {
        "status": 12, "call": 32, "base_call": 0, "saved_pc": 0, "call_size": 0, "function": 0, "previous": 16,
        "call_pc": 40, "proto": 24, "is_c": 0, "code": 56, "lines": 72, "line_count": 28, "absolute": 0,
        "absolute_count": 0, "defined": 40, "source": 104,
    },
    "Lua 5.4": {
        "status": 10, "call": 32, "base_call": 0, "saved_pc": 0, "call_size": 0, "function": 0, "previous": 16,
        "call_pc": 32, "proto": 24, "is_c": 0, "code": 64, "lines": 88, "line_count": 28, "absolute": 96,
        "absolute_count": 40, "defined": 44, "source": 112,
    },
}  # fmt: skip
"""Fields of records.LUA."""
VERSIONS: Sequence[str] = ("", *LAYOUTS)
"""A layout's number is its place; 0 is none."""


def lua_version(image: bytes | memoryview) -> str | None:
    """Return which Lua an image holds, by the text that its authors left in it; None for none, or two."""
    found = {match.group(1) for match in _IDENT.finditer(image)}
    return f"Lua 5.{found.pop().decode()}" if len(found) == 1 else None
