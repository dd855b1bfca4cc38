"""Layout of Lua's structs by version: offsets by which its calls are found.

Sources: lobject.h, lstate.h of Lua 5.1.5, 5.2.4, 5.3.6, 5.4.6 and 5.5.1, for pointers of 8 bytes; lj_obj.h of
LuaJIT 2.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from tracer.late_patterns import late_pattern

_IDENT = late_pattern(rb"\$Lua(?:Version)?: Lua 5\.([1-5])[. ]")
"""lua_ident of lapi.c. Lua 5.0 and LuaJIT have none, or another."""

_LUA_54 = {
    "status": 10, "call": 32, "base_call": 0, "saved_pc": 0, "call_size": 0, "function": 0, "previous": 16,
    "call_pc": 32, "proto": 24, "is_c": 0, "code": 64, "lines": 88, "line_count": 28, "absolute": 96,
    "absolute_count": 40, "defined": 44, "source": 112,
    "current": 0, "vm_state": 0, "short_length": 0,
}  # fmt: skip
LAYOUTS: Mapping[str, Mapping[str, int]] = {
    "Lua 5.1": {
        "status": 10, "call": 40, "base_call": 80, "saved_pc": 48, "call_size": 40, "function": 8, "previous": 0,
        "call_pc": 24, "proto": 32, "is_c": 10, "code": 24, "lines": 40, "line_count": 84, "absolute": 0,
        "absolute_count": 0, "defined": 96, "source": 64,
        "current": 0, "vm_state": 0, "short_length": 0,
    },
    "Lua 5.2": {
        "status": 10, "call": 32, "base_call": 0, "saved_pc": 0, "call_size": 0, "function": 0, "previous": 16,
        "call_pc": 56, "proto": 24, "is_c": 0, "code": 24, "lines": 40, "line_count": 92, "absolute": 0,
        "absolute_count": 0, "defined": 104, "source": 72,
        "current": 0, "vm_state": 0, "short_length": 0,
    },
    "Lua 5.3": {
        "status": 12, "call": 32, "base_call": 0, "saved_pc": 0, "call_size": 0, "function": 0, "previous": 16,
        "call_pc": 40, "proto": 24, "is_c": 0, "code": 56, "lines": 72, "line_count": 28, "absolute": 0,
        "absolute_count": 0, "defined": 40, "source": 104,
        "current": 0, "vm_state": 0, "short_length": 0,
    },
    "Lua 5.4": _LUA_54,
    "LuaJIT 2.1": {
        "status": 0, "call": 0, "base_call": 0, "saved_pc": 0, "call_size": 0, "function": 0, "previous": 0,
        "call_pc": 0, "proto": 0, "is_c": 0, "code": 0, "lines": 80, "line_count": 76, "absolute": 0,
        "absolute_count": 0, "defined": 72, "source": 64,
        "current": 0x170, "vm_state": 0xB8, "short_length": 0,
    },
    "Lua 5.5": {**_LUA_54, "status": 11, "short_length": 11},
}  # fmt: skip
"""Fields of records.LUA."""
_JIT = "LuaJIT 2.1"
_JIT_IDENT = late_pattern(rb"LuaJIT (\d+\.\d+)[. ]")
_JIT_CODE: Mapping[str, re.Pattern[bytes]] = {
    "lua_status": late_pattern(rb"\x0f\xb6\x47\x0b"),  # a byte, 11 behind the argument
    # the word 40 behind the argument less that 32 behind it, by 8
    "lua_gettop": late_pattern(rb"\x48\x8b\x47\x28\x48\x2b\x47\x20\x48\xc1\xf8\x03"),
    # the word 16 behind the argument, then one behind that: panic, 16 bytes before the running state
    "lua_atpanic": late_pattern(rb"\x48\x8b[\x47\x57\x4f]\x10\x48\x8b[\x80-\xbf]\x60\x01\0\0"),
}
"""What its functions begin with where the structs are as LAYOUTS has them: with 64-bit pointers (LJ_GC64)."""
_LANDING = b"\xf3\x0f\x1e\xfa"
"""endbr64"""
VERSIONS: Sequence[str] = ("", *LAYOUTS)
"""A layout's number is its place; 0 is none."""


def lua_version(image: bytes | memoryview) -> str | None:
    """Return which Lua an image holds, by the text that its authors left in it; None for none, or two."""
    found = {match.group(1) for match in _IDENT.finditer(image)}
    return f"Lua 5.{found.pop().decode()}" if len(found) == 1 else None


def luajit_version(image: bytes | memoryview, code_of: Callable[[str], bytes]) -> str | None:
    """Return the layout of a LuaJIT; None for what is none, and for one that keeps its state elsewhere.

    `code_of`: the first bytes of a function of the image, by its name.
    """
    if set(_JIT_IDENT.findall(image)) != {b"2.1"}:
        return None
    agree = (pattern.match(code_of(name).removeprefix(_LANDING)) for name, pattern in _JIT_CODE.items())
    return _JIT if all(agree) else None
