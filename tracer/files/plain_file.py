"""Plain files: opened without waiting, and read up to a size.

A path that others name may lead to a pipe that nobody writes to, a terminal, a device or a folder. Such a file is not
even opened, since to open some devices does something: it is looked at first (O_PATH), and what was looked at is
opened, not what has taken its name since.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import time
from pathlib import Path

from tracer.late_patterns import late_pattern

_KINDS = (
    (stat.S_ISDIR, "a directory"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"), (stat.S_ISLNK, "a link"),
)  # fmt: skip
_PIECE = 1 << 20
_OWN_DESCRIPTOR = late_pattern(r"/(?:dev|proc/self)/fd/([0-9]{1,9})")


class NotPlain(OSError):
    """What is at a path is no plain file; `strerror` says what it is."""


class TooLarge(OSError):
    """A file holds more than its reader takes."""


def open_plain(path: str | os.PathLike[str], *, follow: bool = True, folder: int | None = None) -> int:
    """Open a plain file for reading and return its descriptor; never waits.

    `follow`: through a symbolic link at the end of the path. `folder`: what a relative path begins at, a descriptor.
    Raises NotPlain, and OSError as os.open does.
    """
    look = os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    seen = os.open(path, look, dir_fd=folder)
    try:
        mode = os.fstat(seen).st_mode
        if not stat.S_ISREG(mode):
            kind = next((name for test, name in _KINDS if test(mode)), "something else")
            raise NotPlain(errno.EINVAL, f"it is {kind}, no plain file", os.fspath(path))
        return os.open(f"/proc/self/fd/{seen}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    finally:
        os.close(seen)


def is_plain(path: str | os.PathLike[str]) -> bool:
    """Tell whether a plain file is at the path; False where it may not be looked at."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def read_plain(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """Return all that a plain file holds. Raises NotPlain, TooLarge above `most_bytes`, and OSError."""
    with open(open_plain(path), "rb", buffering=0) as file:
        data = bytearray()
        while piece := file.read(min(_PIECE, most_bytes + 1 - len(data))):
            data += piece
            if len(data) > most_bytes:
                raise TooLarge(errno.EFBIG, f"it is larger than {most_bytes >> 20:,} MB", os.fspath(path))
    return bytes(data)


def read_named(path: str | os.PathLike[str], most_bytes: int, seconds: float = 10) -> bytes:
    """Return all that a file holds which the user named: a plain one, or a pipe that a shell made for `<(...)`.

    Raises NotPlain, TooLarge above `most_bytes`, TimeoutError where a pipe has no end within `seconds`, and OSError.
    """
    own = _OWN_DESCRIPTOR.fullmatch(os.fspath(path))
    if own is None or not stat.S_ISFIFO(os.fstat(int(own[1])).st_mode):
        return read_plain(path, most_bytes)
    pipe, data, until = int(own[1]), bytearray(), time.monotonic() + seconds
    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    while waiting.poll(max(0.0, until - time.monotonic()) * 1000):
        piece = os.read(pipe, _PIECE)
        data += piece
        if len(data) > most_bytes:
            raise TooLarge(errno.EFBIG, f"it is larger than {most_bytes >> 20:,} MB", os.fspath(path))
        if not piece:
            return bytes(data)
    raise TimeoutError(errno.ETIMEDOUT, f"it did not end within {seconds:g} s", os.fspath(path))


def read_start(path: str | os.PathLike[str], size: int) -> bytes:
    """Return at most `size` first bytes of a plain file. Raises NotPlain and OSError."""
    with open(open_plain(path), "rb", buffering=0) as file:
        return file.read(size)
