"""A file of the target that grows while it is read, and may be deleted."""

from __future__ import annotations

import os
from contextlib import suppress

from tracer.files.plain_file import open_plain


class GrowingFile:
    """Reads what was appended since; from the start again where the file was cut."""

    def __init__(self, fd: int, offset: int = 0) -> None:
        self._fd, self._offset = fd, offset
        status = os.fstat(fd)
        self.identity = status.st_dev, status.st_ino

    @classmethod
    def open(cls, path: str, owners: tuple[int, ...], folder: int | None = None) -> GrowingFile | None:
        """Open a plain file of one of the `owners` (user ids); None for all else: anybody may write to a folder for
        temporary files. `path` is relative to the descriptor `folder`, if there is one."""
        try:
            fd = open_plain(path, follow=False, folder=folder)
        except OSError:
            return None
        if os.fstat(fd).st_uid not in owners:
            os.close(fd)
            return None
        return cls(fd)

    @classmethod
    def open_mapped(cls, path: str) -> GrowingFile | None:
        """Open a plain file that a process has mapped."""
        try:
            return cls(open_plain(path))
        except OSError:
            return None

    @property
    def modified_ns(self) -> int:
        """Return when it was last written to, in nanoseconds since 1970."""
        return os.fstat(self._fd).st_mtime_ns

    @property
    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def skip(self, offset: int) -> None:
        """Pass over what is there up to `offset`."""
        self._offset = offset

    def read(self, most: int) -> bytes:
        """Return at most so many bytes of what is new."""
        with suppress(OSError):
            if self.size < self._offset:
                self._offset = 0
            data = os.pread(self._fd, most, self._offset)
            self._offset += len(data)
            return data
        return b""

    def close(self) -> None:
        os.close(self._fd)
