"""Search for the names of functions of which a binary may have inlined copies: without its DWARF, which is cheap."""

from __future__ import annotations

from collections.abc import Iterable

from tracer.elf.image import Image
from tracer.late_patterns import late_pattern
from tracer.model.operations import FunctionSpec

PATTERN = late_pattern(r"[*?\[]")
"""What makes a name of a spec one for many functions."""


def mentions(image: Image, functions: Iterable[FunctionSpec]) -> bool:
    """Tell, without reading its DWARF, whether a binary may have copies of functions that have no symbol here."""
    section = image.section(".debug_str")
    names = {f.function.encode() for f in functions if not PATTERN.search(f.function)} if section else set()
    strings = bytes(image.contents(section)) if section and names else b""
    return any(strings.find(b"\0" + name + b"\0") >= 0 for name in names)
