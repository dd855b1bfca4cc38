"""CPython: its code objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracer.elf.image import Image
from tracer.interpreters.python.code_end import python_code_end
from tracer.interpreters.python.location_table import lines_at
from tracer.interpreters.python.runtimes import PythonRuntimes
from tracer.interpreters.script_code import ScriptCode
from tracer.kernel.maps import Maps
from tracer.mishaps import Mishaps
from tracer.model.operations import Site, Spec
from tracer.model.records import InterpreterRecord

_CODECS = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}
_ELLIPSIS = "..."
_INIT_CLEANUP = ("__init__", "__init__", 0)
"""Its name, file and first line."""


class Python:
    name = "Python"
    kinds = (InterpreterRecord.PYTHON,)
    replaces_loop = True
    layouts = ()

    def runtimes(self, maps: Maps, mishaps: Mishaps) -> PythonRuntimes:
        return PythonRuntimes(maps, mishaps)

    def entries(self, image: Image) -> Spec | None:
        """Return none: its state is found by its binary."""
        return None

    def code_end(self, image: Image) -> Site | None:
        return python_code_end(image)

    def text(self, row: Any, first_line: int) -> tuple[str | None, str | None]:
        return _text(row, "name"), _text(row, "file")

    def is_shown(self, code: ScriptCode) -> bool:
        """Tell it from CPython's own _Py_InitCleanup, on behalf of which a fast call of a class runs `__init__` (3.12
        and later; codeobject.c, specialize.c), and which its tracebacks leave out too."""
        return (code.name, code.file, code.first_line) != _INIT_CLEANUP

    def lines(self, code: ScriptCode, wheres: Sequence[int]) -> Sequence[int | None]:
        return lines_at(code.table, code.first_line, wheres)


def _text(row: Any, field: str) -> str | None:
    """Return the text of a str object: its header says how wide its characters are (PEP 393)."""
    length, state = int(row[f"{field}_length"]), int(row[f"{field}_state"])
    data: bytes = row[field].tobytes()
    width = state >> 2 & 7
    if width not in _CODECS or not length or not state & 32:
        return None
    text = data[: length * width].decode(_CODECS[width], "replace")
    return text if length * width <= len(data) else text + _ELLIPSIS
