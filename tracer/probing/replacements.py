"""Allocators that take the place of libc's, jemalloc and its like: whether every block of theirs is seen to be made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from tracer.binaries.open_binaries import OpenBinary
from tracer.late_patterns import late_pattern
from tracer.probing.preloading import is_of_heap
from tracer.specs.allocators import REPLACEMENTS

_INERT = late_pattern(
    r"mallctl\w*|malloc_(stats|usable_size|size|good_size|info|trim|message|conf)\w*|mallinfo2?|mallopt"
    r"|[ns]allocx|tc_(version|set_new_mode|mallo\w*|malloc_s\w*|nallocx)|MallocExtension_\w+|_ZN?K?15MallocExtension\w*"
    r"|mi_(version|option_\w+|stats_\w+|collect|process_in\w+|thread_\w+|register_\w+|is_\w+|check_owned|debug_\w+"
    r"|(malloc_)?(usable|good)_size|malloc_size)"
)
"""What makes no block and gives none a new size, of the headers of jemalloc 5.3, gperftools 2.10 and mimalloc 2.0."""
_BREAKS = ("brk", "sbrk")


def is_replacement(binary: OpenBinary) -> bool:
    if binary.interposes:
        return True
    names = {Path(binary.path).name, binary.image.soname or ""}
    return any(fnmatchcase(name, pattern) for name in names for pattern in REPLACEMENTS)


def whole_replacements(binaries: Iterable[OpenBinary]) -> set[int]:
    """Return the ids of those of which no other binary uses a function that is not probed and may make a block."""
    found, known = {}, list(binaries)
    for binary in filter(is_replacement, known):
        if any(is_of_heap(placement) for _, placement in binary.placements):
            found[binary.id] = set(_unprobed(binary))
    if not found:
        return set()
    wanted = set().union(*(binary.symbols.lacking() for binary in known if binary.id not in found))
    return {number for number, unprobed in found.items() if not unprobed & wanted}


def moves_break(binaries: Iterable[OpenBinary]) -> bool:
    """Tell whether a program or library besides allocators and the C library asks for memory by brk(2)."""
    others = (binary for binary in binaries if not is_replacement(binary) and not _is_of_libc(binary))
    return any(binary.names.lacks(name) for binary in others for name in _BREAKS)


def _is_of_libc(binary: OpenBinary) -> bool:
    return binary.is_loader or bool(binary.names.find("sbrk"))


def _unprobed(binary: OpenBinary) -> Iterator[str]:
    """Yield the functions that a library exports and that are not probed, by none of their names."""
    probed = {placement.site.link_address for _, placement in binary.placements}
    for symbol in binary.symbols.matching("*"):
        if symbol.address not in probed and not _INERT.fullmatch(symbol.name):
            yield symbol.name

