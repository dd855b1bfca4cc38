"""Files of the cache that tell by a digest whether they are whole, and what they are named by."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import tracer
from tracer.files.cache_folder import evict_later, read_own, write_own

_DIGEST_BYTES = 16


def digest(*pieces: bytes | memoryview) -> bytes:
    """Return a digest of these, one behind the other."""
    found = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for piece in pieces:
        found.update(piece)
    return found.digest()


def name_of(*parts: object) -> str:
    """Return a name for what depends on these, and on refleak's own modules."""
    return digest(repr((*parts, _modules())).encode("utf-8", "surrogateescape")).hex()


def read_sealed(path: Path) -> bytes:
    """Return what `write_sealed` was given, and note that it is used. Raises OSError, ValueError where it is
    damaged."""
    data = read_own(path)
    body = data[_DIGEST_BYTES:]
    if digest(body) != data[:_DIGEST_BYTES]:
        raise ValueError("damaged")
    with suppress(OSError):  # a cache that may only be read
        os.utime(path)
    return body


def write_sealed(path: Path, body: bytes, limit_bytes: int) -> None:
    """Write a file, all of it or nothing; of its kind, by suffix, so many bytes may stay. Raises OSError."""
    write_own(path, digest(body), body)
    evict_later(path.parent, path.suffix, limit_bytes)


@cache
def _modules() -> str:
    """Return what tells refleak's modules from those of another version."""
    found = sorted(_stamps(Path(__file__).parents[1]))
    return digest(repr((tracer.__version__, found)).encode()).hex()


def _stamps(folder: Path | str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _stamps(entry.path)
