"""Code of an interpreter, read from its record in the ring, and the frames of calls of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

import numpy as np

from tracer.interpreters.languages import LANGUAGE_OF
from tracer.interpreters.script_code import ScriptCode
from tracer.model import records
from tracer.model.frames import Frame
from tracer.model.records import InterpreterRecord

_HEAD_BYTES = records.INTERPRETER_CODE.itemsize - records.INTERPRETER_CODE["table"].itemsize


def read_code(blob: bytes) -> ScriptCode | None:
    """Return the code of a record of the interpreter ring; None for what is none."""
    if len(blob) < _HEAD_BYTES:
        return None
    whole = blob[:_HEAD_BYTES].ljust(records.INTERPRETER_CODE.itemsize, b"\0")
    row = np.frombuffer(whole, records.INTERPRETER_CODE, 1)[0]
    if row["kind"] not in LANGUAGE_OF:
        return None
    kind, table_bytes, extra_bytes = InterpreterRecord(row["kind"]), int(row["table_bytes"]), int(row["extra_bytes"])
    table, extra = blob[_HEAD_BYTES : _HEAD_BYTES + table_bytes], row["extra"].tobytes()[:extra_bytes]
    is_whole = len(table) == table_bytes and len(extra) == extra_bytes
    first_line = int(row["first_line"])
    name, file = LANGUAGE_OF[kind].text(row, first_line)
    return ScriptCode(kind, name, file, first_line, table, extra, is_whole)


def frames_of(code: ScriptCode, wheres: Sequence[int]) -> list[Frame]:
    """Return the frame of each call, by where it stands: an instruction, or a line where the record tells lines.

    For all at once, since a table of lines is read from its start.
    """
    language = LANGUAGE_OF[code.kind]
    module = PurePosixPath(code.file).name or code.file if code.file else None
    why_unknown = None if code.name else "its name could not be read"
    return [
        Frame(code.name, module=module, file=code.file, line=None if where == records.INTERPRETER_NO_LINE else line,
              kind="guest", language=language.name, why_unknown=why_unknown)
        for where, line in zip(wheres, language.lines(code, wheres), strict=True)
    ]  # fmt: skip
