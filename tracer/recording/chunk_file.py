"""A file that grows by whole chunks only."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tracer.errors import CannotWrite
from tracer.recording.chunks import PLAIN_VERSION, file_header
from tracer.recording.output_place import is_in_place, open_replacing

OpenFile = Callable[[Path, bool], io.RawIOBase]
"""Opens a path for writing and reading, unbuffered; True: what is there is replaced."""
_COPY_BYTES = 1 << 20


def open_file(path: Path, replace: bool) -> io.RawIOBase:
    return open_replacing(path) if replace else open(path, "x+b", buffering=0)


class ChunkFile:
    """Raises OSError; what was written before it happened is whole."""

    def __init__(self, path: Path, opener: OpenFile, *, replace: bool, version: int = PLAIN_VERSION) -> None:
        self.path = path
        self._file = opener(path, replace)
        self.size_bytes = 0
        self.append(file_header(version))

    def append(self, chunk: bytes) -> None:
        """Write all of it, or cut the file back to where it was."""
        rest = memoryview(chunk)
        try:
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
        except OSError:
            self._cut_back()
            raise
        self.size_bytes += len(chunk)

    def _cut_back(self) -> None:
        """A reader passes over half a chunk too, should this fail."""
        try:
            self._file.truncate(self.size_bytes)
            self._file.seek(self.size_bytes)
        except OSError:
            return

    def copy_from(self, other: ChunkFile, start: int, end: int) -> None:
        """Append a range of another file, which must hold whole chunks."""
        other._file.seek(start)
        while start < end:
            part = other._file.read(min(_COPY_BYTES, end - start))
            if not part:
                raise OSError(5, os.strerror(5))
            self.append(part)
            start += len(part)
        other._file.seek(other.size_bytes)

    def discard(self) -> None:
        self._file.close()
        with suppress(OSError):
            if not is_in_place(self.path):
                self.path.unlink()

    @property
    def is_there(self) -> bool:
        """Return whether the file can be found where it was put: its folder may be gone."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), self.path.stat())
        except io.UnsupportedOperation:  # no file of the system's
            return True
        except OSError:
            return False

    def move_to(self, path: Path) -> None:
        self.path.replace(path)
        self.path = path

    def close(self) -> None:
        self._file.close()


def cannot_write(path: Path, error: OSError, holds: str = "") -> CannotWrite:
    """Return the error to raise, with what the file still holds, if anything."""
    message = f"cannot write {path}: {error.strerror}"
    if isinstance(error, FileExistsError):
        return CannotWrite(f"{path} exists", "give another name, or --force to replace it")
    if holds:
        return CannotWrite(f"{message}; it holds {holds}", f"refleak report {path} shows what it holds")
    return CannotWrite(message)
