"""glibc's list of libraries, /etc/ld.so.cache, read as data.

Formats: sysdeps/generic/dl-cache.h of glibc 2.36: the new one alone, or behind the old one. A damaged file is an empty
list, as for the loader.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Sequence
from dataclasses import field

from tracer.files.plain_file import open_plain
from tracer.late_dataclasses import dataclass

PATH = "/etc/ld.so.cache"
MOST_BYTES = 4 << 20
"""A hundred times that of a large system; whoever has a root directory of their own can make it any."""

_OLD_MAGIC, _NEW_MAGIC = b"ld.so-1.7.0", b"glibc-ld.so.cache1.1"
_OLD_HEADER, _OLD_ENTRY = struct.Struct("<12sI"), struct.Struct("<III")
_NEW_HEADER, _NEW_ENTRY = struct.Struct("<20sIIB3xI12x"), struct.Struct("<IIIIQ")
_EXTENSION, _SECTION = struct.Struct("<II"), struct.Struct("<IIII")
_EXTENSION_MAGIC, _HWCAPS_TAG = 0xEAA42174, 1
_ELF, _X86_64 = 0x1, 0x303
_NAMED_HWCAP = 0x40000000
"""In the upper half of an entry's hwcap field: the lower half counts names of folders of glibc-hwcaps."""
_MOST_NAME = 4096


@dataclass(frozen=True)
class LoaderCache:
    """Where ldconfig found each library."""

    entries: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Name of a library to (folder of glibc-hwcaps or "", path), in the order of the file."""

    def find(self, name: str, levels: Sequence[str]) -> str | None:
        """Return the path of a library; that of the first of `levels`, which this processor has, goes first."""
        found = self.entries.get(name, [])
        return next((path for level in (*levels, "") for of, path in found if of == level), None)


def read_loader_cache(path: str) -> LoaderCache:
    """Read a cache; one that is not there, or is no cache, is empty."""
    try:
        with open(open_plain(path), "rb") as file:
            if os.fstat(file.fileno()).st_size > MOST_BYTES:
                return LoaderCache()
            return parse_loader_cache(file.read(MOST_BYTES))
    except OSError:
        return LoaderCache()


def parse_loader_cache(data: bytes) -> LoaderCache:
    """Parse a cache; what cannot be understood of it is left out."""
    try:
        return _parse(data)
    except struct.error:
        return LoaderCache()


def _parse(data: bytes) -> LoaderCache:
    start = 0
    if data.startswith(_OLD_MAGIC):
        count = _OLD_HEADER.unpack_from(data)[1]
        strings = _OLD_HEADER.size + count * _OLD_ENTRY.size
        start = strings + 7 & ~7
        if data[start : start + len(_NEW_MAGIC)] != _NEW_MAGIC:
            old = _OLD_ENTRY.iter_unpack(data[_OLD_HEADER.size : strings]) if strings <= len(data) else ()
            return _collected(data, strings, ((flags, key, value, "") for flags, key, value in old))
    magic, count, _, _, extension = _NEW_HEADER.unpack_from(data, start)
    end = start + _NEW_HEADER.size + count * _NEW_ENTRY.size
    if magic != _NEW_MAGIC or end > len(data):
        return LoaderCache()
    levels = _level_names(data, start, extension)
    found = []
    for flags, key, value, _, hwcap in _NEW_ENTRY.iter_unpack(data[start + _NEW_HEADER.size : end]):
        level = levels.get(hwcap & 0xFFFFFFFF) if hwcap >> 32 == _NAMED_HWCAP else None if hwcap else ""
        if level is not None:  # the other hwcaps are of processors that glibc knows no more
            found.append((flags, key, value, level))
    return _collected(data, start, found)


def _collected(data: bytes, strings: int, found: Iterable[tuple[int, int, int, str]]) -> LoaderCache:
    cache = LoaderCache()
    for flags, key, value, level in found:
        if flags in (_ELF, _X86_64):
            cache.entries.setdefault(_string(data, strings + key), []).append((level, _string(data, strings + value)))
    return cache


def _level_names(data: bytes, start: int, extension: int) -> dict[int, str]:
    if extension == 0:
        return {}
    magic, sections = _EXTENSION.unpack_from(data, extension)
    if magic != _EXTENSION_MAGIC:
        return {}
    for index in range(min(sections, 64)):
        tag, _, offset, size = _SECTION.unpack_from(data, extension + _EXTENSION.size + index * _SECTION.size)
        if tag == _HWCAPS_TAG:
            count = min(size, 256) // 4
            offsets = struct.unpack_from(f"<{count}I", data, offset)
            return {number: _string(data, start + at) for number, at in enumerate(offsets)}
    return {}


def _string(data: bytes, at: int) -> str:
    end = data.find(b"\0", at, at + _MOST_NAME)
    return os.fsdecode(data[at:end]) if end >= 0 else ""
