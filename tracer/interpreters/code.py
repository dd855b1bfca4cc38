"""Code of an interpreter, as the kernel side copied it when it was first seen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from tracer.interpreters.lua import lines
from tracer.interpreters.python import location_table
from tracer.model import records
from tracer.model.frames import Frame
from tracer.model.records import GuestRecord

_CODECS = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}
_HEAD_BYTES = records.GUEST_CODE.itemsize - records.GUEST_CODE["table"].itemsize
_ELLIPSIS = "..."
_LONGEST_CHUNK = 40
_INIT_CLEANUP = ("__init__", "__init__", 0)
"""Its name, file and first line."""


@dataclass(frozen=True)
class ScriptCode:
    kind: GuestRecord
    name: str | None
    """None where Lua does not tell: a function has no name there."""
    file: str | None
    first_line: int
    table: bytes
    extra: bytes
    is_whole: bool
    """Whether the tables were copied to their end."""

    @property
    def is_shown(self) -> bool:
        """Whether it is a script's: not CPython's own _Py_InitCleanup, on behalf of which a fast call of a class runs
        `__init__` (3.12 and later; codeobject.c, specialize.c), and which its tracebacks leave out too."""
        return (self.kind, self.name, self.file, self.first_line) != (GuestRecord.PYTHON, *_INIT_CLEANUP)

    def frames(self, wheres: Sequence[int]) -> list[Frame]:
        """Return the frame of each call that stands at one of these: an instruction, or with LUA_LINES the line.

        For all at once, since the table of lines is read from its start.
        """
        module = PurePosixPath(self.file).name or self.file if self.file else None
        language = "Python" if self.kind is GuestRecord.PYTHON else "Lua"
        why_unknown = None if self.name else "its name could not be read"
        return [
            Frame(self.name, module=module, file=self.file, line=line, kind="guest", language=language,
                  why_unknown=why_unknown)
            for line in self._lines(wheres)
        ]  # fmt: skip

    def frame(self, where: int) -> Frame:
        return self.frames([where])[0]

    def _lines(self, wheres: Sequence[int]) -> list[int | None]:
        if self.kind is GuestRecord.PYTHON:
            found = location_table.lines_at(self.table, self.first_line, wheres)
        elif self.kind is GuestRecord.LUA_LINES:
            found = list(wheres)
        else:
            found = [lines.line_at(self.table, self.extra, self.first_line, where) for where in wheres]
        return [None if where == records.GUEST_NO_LINE else line for where, line in zip(wheres, found, strict=True)]


def read_code(blob: bytes) -> ScriptCode | None:
    """Return the code of a record of the guest ring; None for what is none."""
    if len(blob) < _HEAD_BYTES:
        return None
    row = np.frombuffer(blob[:_HEAD_BYTES].ljust(records.GUEST_CODE.itemsize, b"\0"), records.GUEST_CODE, 1)[0]
    if row["kind"] not in (GuestRecord.PYTHON, GuestRecord.LUA, GuestRecord.LUA_LINES):
        return None
    kind, table_bytes, extra_bytes = GuestRecord(row["kind"]), int(row["table_bytes"]), int(row["extra_bytes"])
    table, extra = blob[_HEAD_BYTES : _HEAD_BYTES + table_bytes], row["extra"].tobytes()[:extra_bytes]
    is_whole = len(table) == table_bytes and len(extra) == extra_bytes
    first_line = int(row["first_line"])
    if kind is GuestRecord.PYTHON:
        name, file = _python_text(row, "name"), _python_text(row, "file")
    else:
        file = _chunk_name(row["file"].tobytes()[: max(int(row["file_length"]) - 1, 0)])
        name = _lua_name(file, first_line)
    return ScriptCode(kind, name, file, first_line, table, extra, is_whole)


def _python_text(row: Any, field: str) -> str | None:
    """Return the text of a str object: its header says how wide its characters are (PEP 393)."""
    length, state = int(row[f"{field}_length"]), int(row[f"{field}_state"])
    data: bytes = row[field].tobytes()
    width = state >> 2 & 7
    if width not in _CODECS or not length or not state & 32:
        return None
    text = data[: length * width].decode(_CODECS[width], "replace")
    return text if length * width <= len(data) else text + _ELLIPSIS


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


def _lua_name(file: str | None, first_line: int) -> str | None:
    """Return what Lua's own tracebacks say of a function without a name."""
    if file is None:
        return None
    return "main chunk" if first_line == 0 else f"function <{PurePosixPath(file).name or file}:{first_line}>"
