"""Unwind tables kept on disk: a trace must know those of a hundred binaries before its target may start.

A file holds one table: header, pages, rows, rules, as they lie in memory. It is written under a temporary name and
renamed, so that a reader sees all of it or nothing, and it is never changed afterwards.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np

from tracer.cfi.frame_source import frame_sources
from tracer.cfi.unwind_table import RULE_MASK, UnwindTable, build_table, start_of
from tracer.elf.image import Image
from tracer.files.cache_folder import cache_directory, evict_later, read_own, write_own
from tracer.model.records import RULE

VERSION = 2
"""Grows when the format changes, and when the same bytes would give another table."""
LIMIT_BYTES = 256 << 20

_MAGIC = b"RFLUNWND"
_START = struct.Struct("<8sII")
"""Magic, version, CRC-32 of all that follows."""
_LAYOUT = struct.Struct("<32sQIII")
"""Key, first link page, lengths of the arrays of pages (0: there is no table), rows and rules, which follow."""
_HEADER_BYTES = _START.size + _LAYOUT.size


def cached_table(image: Image, directory: Path | None = None, limit_bytes: int = LIMIT_BYTES) -> UnwindTable | None:
    """Return the table of a binary as `build_table` does, from the cache where it is there.

    `directory` is `cache_directory()` unless given. A cache that cannot be read or written costs time, no table.
    """
    key = _key(image)
    try:
        directory = directory or cache_directory()
    except RuntimeError:  # no home directory
        return build_table(image)
    path = directory / f"{key.hex()}.unwind"
    with suppress(OSError, ValueError):
        table = _read(path, key)
        with suppress(OSError):  # a cache that may only be read
            os.utime(path)
        return table
    table = build_table(image)
    with suppress(OSError):
        _write(path, key, table)
        evict_later(directory, ".unwind", limit_bytes)
    return table


def _key(image: Image) -> bytes:
    """Return a digest of all that the table is made of.

    Not the build id: tools that rewrite a binary (patchelf, BOLT) keep it, and a linker may be told any. The digest
    of a whole .eh_frame costs 3 ms where it has 5 MB.
    """
    digest = hashlib.sha256(repr((image.machine, image.segments, start_of(image))).encode())
    for source in frame_sources(image):
        place = (source.address, len(source.data), source.debug, source.ends_at_zero, source.text, source.table)
        digest.update(repr(place).encode())
        digest.update(source.data)
    return digest.digest()


def _read(path: Path, key: bytes) -> UnwindTable | None:
    """Read a file of the cache; raises ValueError where it is damaged or of another version, OSError."""
    data = read_own(path)
    if len(data) < _HEADER_BYTES:
        raise ValueError("no header")
    magic, version, checksum = _START.unpack_from(data)
    if (magic, version) != (_MAGIC, VERSION) or zlib.crc32(memoryview(data)[_START.size :]) != checksum:
        raise ValueError("another version, or damaged")
    found_key, first_page, pages, rows, rules = _LAYOUT.unpack_from(data, _START.size)
    if found_key != key or len(data) != _HEADER_BYTES + 4 * (pages + rows) + RULE.itemsize * rules:
        raise ValueError("another binary's, or lengths that are wrong")
    if pages == 0:
        return None
    rows_at = _HEADER_BYTES + 4 * pages
    table = UnwindTable(
        first_page,
        np.frombuffer(data, np.uint32, pages, _HEADER_BYTES),
        np.frombuffer(data, np.uint32, rows, rows_at),
        np.frombuffer(data, RULE, rules, rows_at + 4 * rows),
    )
    if table.pages[0] or table.pages[-1] != rows or np.any(table.pages[1:] <= table.pages[:-1]):
        raise ValueError("pages out of order")
    if np.max(table.rows & RULE_MASK) >= rules:
        raise ValueError("a rule that is not there")
    return table


def _write(path: Path, key: bytes, table: UnwindTable | None) -> None:
    first_page, arrays = 0, []
    if table is not None:
        first_page, arrays = table.first_link_page, [table.pages, table.rows, table.rules]
    lengths = [len(array) for array in arrays] or [0, 0, 0]
    contents = b"".join((_LAYOUT.pack(key, first_page, *lengths), *(array.tobytes() for array in arrays)))
    write_own(path, _START.pack(_MAGIC, VERSION, zlib.crc32(contents)), contents)
