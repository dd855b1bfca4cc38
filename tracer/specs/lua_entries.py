"""The functions that enter Lua: with them its state becomes known."""

from __future__ import annotations

from tracer.model.operations import FunctionSpec, Operation, SiteFlag, Spec, argument

_ENTRIES = ("lua_callk", "lua_pcallk", "lua_resume", "lua_call", "lua_pcall", "lua_cpcall")
LUA_ENTRY = _ENTRIES[2]
"""Every version has it."""


def lua_entries(version: str) -> Spec:
    """Return the entries of a Lua; `version` is one of tracer.interpreters.lua.layout."""
    functions = (
        FunctionSpec(name, Operation.GUEST, version, object=argument(0), flags=SiteFlag.ENTRY_RESULT)
        for name in _ENTRIES
    )
    return Spec("lua", tuple(functions))
