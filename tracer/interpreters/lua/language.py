"""Lua and LuaJIT: their functions, and the calls that enter them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from tracer.architecture.current import argument
from tracer.binaries.open_binaries import OpenBinary
from tracer.elf.image import Image
from tracer.elf.symbol_table import read_symbol_table
from tracer.interpreters.lua.layout import LAYOUTS, VERSIONS, lua_version, luajit_version
from tracer.interpreters.lua.lines import line_at
from tracer.interpreters.script_code import ScriptCode
from tracer.kernel.maps import Maps
from tracer.mishaps import Mishaps
from tracer.model import records
from tracer.model.operations import FunctionSpec, Operation, Site, SiteFlag, Spec
from tracer.model.records import InterpreterRecord

_ENTRIES = ("lua_callk", "lua_pcallk", "lua_resume", "lua_call", "lua_pcall", "lua_cpcall")
_IN_EVERY_VERSION = _ENTRIES[2]
_CODE_BYTES = 24
_ELLIPSIS = "..."
_LONGEST_CHUNK = 40


class LuaRuntimes:
    """A Lua is found by the calls that enter it, and not by its binary."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def is_in(self, binary: OpenBinary) -> bool:
        return False

    def enter(self, table: int, mapped: Iterable[tuple[OpenBinary, int]]) -> None:
        """Do nothing."""

    def misses_ends(self, binary: OpenBinary) -> None:
        """Do nothing."""


class Lua:
    name = "Lua"
    kinds = (InterpreterRecord.LUA, InterpreterRecord.LUA_LINES)
    replaces_loop = False
    layouts = VERSIONS

    def runtimes(self, maps: Maps, mishaps: Mishaps) -> LuaRuntimes:
        rows = maps.view("LUAS", records.LUA, records.LUA_LAYOUTS)
        for version, layout in LAYOUTS.items():
            for field, offset in layout.items():
                rows[field][VERSIONS.index(version)] = offset
        return LuaRuntimes()

    def entries(self, image: Image) -> Spec | None:
        if not read_symbol_table(image).find(_IN_EVERY_VERSION):
            return None
        version = lua_version(image.data[:]) or luajit_version(image.data[:], partial(_code_of, image))
        if version is None:
            return None
        functions = (
            FunctionSpec(name, Operation.INTERPRETER, version, object=argument(0), flags=SiteFlag.ENTRY_RESULT)
            for name in _ENTRIES
        )
        return Spec("lua", tuple(functions))

    def code_end(self, image: Image) -> Site | None:
        """Return none: what its code holds is compared each time."""
        return None

    def text(self, row: Any, first_line: int) -> tuple[str | None, str | None]:
        file = _chunk_name(row["file"].tobytes()[: max(int(row["file_length"]) - 1, 0)])
        return _name(file, first_line), file

    def is_shown(self, code: ScriptCode) -> bool:
        return True

    def lines(self, code: ScriptCode, wheres: Sequence[int]) -> Sequence[int | None]:
        """Return the lines; LUA_LINES come with them in place of instructions."""
        if code.kind is InterpreterRecord.LUA_LINES:
            return wheres
        return [line_at(code.table, code.extra, code.first_line, where) for where in wheres]


def _code_of(image: Image, name: str) -> bytes:
    """Return the first bytes of a function; none where the binary has no such function, or several."""
    addresses = {symbol.address for symbol in read_symbol_table(image).find(name)}
    offset = image.file_offset_of(addresses.pop()) if len(addresses) == 1 else None
    return b"" if offset is None else bytes(image.data[offset : offset + _CODE_BYTES])


def _chunk_name(source: bytes) -> str | None:
    """Return what Lua calls a chunk in its messages (lobject.c, luaO_chunkid): a file, or its text's first line."""
    text = source.decode("utf-8", "replace")
    if text[:1] in ("@", "="):
        return text[1:] or None
    if not text:
        return None
    line = re.split(r"[\r\n]", text, maxsplit=1)[0]
    cut = line[:_LONGEST_CHUNK]
    return f'[string "{cut}{_ELLIPSIS if cut != text else ""}"]'


def _name(file: str | None, first_line: int) -> str | None:
    """Return what Lua's own tracebacks say of a function without a name."""
    if file is None:
        return None
    return "main chunk" if first_line == 0 else f"function <{PurePosixPath(file).name or file}:{first_line}>"
