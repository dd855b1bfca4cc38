"""Allocators that are linked into a binary under names of their own, as Redis's je_malloc and Rust's _rjem_malloc."""

from __future__ import annotations

from tracer.binaries.open_binaries import OpenBinary
from tracer.elf.code_references import refers_to

_MARK = "mallocx"
_UNSEEN = ("xallocx", "malloc_usable_size", "sallocx")
"""What changes a block in its place, or says that there is more room in it than was asked for."""


def has_embedded(binary: OpenBinary) -> bool:
    """Tell whether functions of one are probed."""
    return any(map(_is_of_one, _functions(binary)))


def is_embedded_whole(binary: OpenBinary) -> bool:
    """Tell whether a binary has a jemalloc of its own of which all blocks are known, with their sizes."""
    prefixes = {name.removesuffix(_MARK) for name in _functions(binary) if name.endswith(_MARK)} - {""}
    if not prefixes or binary.is_stale:
        return False
    names = (prefix + name for prefix in prefixes for name in _UNSEEN)
    return not refers_to(binary.image, [symbol.address for name in names for symbol in binary.symbols.find(name)])


def _is_of_one(function: str) -> bool:
    return function.startswith("mi_") or (function.endswith(_MARK) and function != _MARK)


def _functions(binary: OpenBinary) -> list[str]:
    return [placement.site.function.function for _, placement in binary.placements]
