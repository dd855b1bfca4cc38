"""File versions: what a file held when it was opened, as far as it can be told without reading all of it."""

from __future__ import annotations

import hashlib
import os
import time

from tracer.late_dataclasses import dataclass

_HEAD_BYTES = _TAIL_BYTES = 4096
"""ELF and program headers, and the build id, stand at the start; section headers at the end."""
_DIGEST_BYTES = 16
_SETTLED_SECONDS = 2
"""A file that changed later than this before it was looked at could change again without another time."""


@dataclass(frozen=True)
class FileVersion:
    """One state of a file: another one has other bytes, or may have."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    digest: bytes
    """Of both ends of the file."""

    def now(self, fd: int) -> FileVersion | None:
        """Return the version that the same file, opened as `fd`, has now; None where its bytes are others.

        A change of ctime alone may be one of its name or owner: then the digest decides, since a copy may have been
        given the old mtime.
        """
        status = os.fstat(fd)
        if (status.st_size, status.st_mtime_ns) != (self.size, self.mtime_ns):
            return None
        if status.st_ctime_ns == self.ctime_ns:
            return self
        now = version_of(fd)
        return now if now.digest == self.digest else None

    @property
    def is_settled(self) -> bool:
        """Whether what is found in the file may be kept for another run."""
        return _was_long_ago(self.mtime_ns, self.ctime_ns)

    @property
    def file(self) -> tuple[int, int]:
        return self.device, self.inode


def is_settled(status: os.stat_result) -> bool:
    """Tell whether a file that is changed from now on has another time by that."""
    return _was_long_ago(status.st_mtime_ns, status.st_ctime_ns)


def _was_long_ago(*times_ns: int) -> bool:
    return time.time_ns() - max(times_ns) > _SETTLED_SECONDS * 10**9


def version_of(fd: int) -> FileVersion:
    """Return the version of an open file; raises OSError."""
    status = os.fstat(fd)
    ends = os.pread(fd, _HEAD_BYTES, 0) + os.pread(fd, _TAIL_BYTES, max(0, status.st_size - _TAIL_BYTES))
    digest = hashlib.blake2b(ends, digest_size=_DIGEST_BYTES).digest()
    return FileVersion(
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, digest
    )  # fmt: skip
