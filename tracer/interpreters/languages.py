"""Languages whose frames are shown. Each has a folder here, and on the kernel side a program that walks its frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracer.interpreters.language import Language
from tracer.interpreters.lua.language import Lua
from tracer.interpreters.python.language import Python
from tracer.model.records import InterpreterRecord

LANGUAGES: Sequence[Language] = (Python(), Lua())
LANGUAGE_OF: Mapping[InterpreterRecord, Language] = {kind: one for one in LANGUAGES for kind in one.kinds}


def layout_number(layout: str | None) -> int:
    """Return the number that the kernel side knows the layout of an entry by; 0 for none."""
    return next((one.layouts.index(layout) for one in LANGUAGES if layout in one.layouts), 0) if layout else 0
