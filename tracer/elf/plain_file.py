"""Open what others name: it can be a pipe that nobody writes to, or a device that acts when it is opened."""

from __future__ import annotations

import errno
import os
import stat

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def open_plain(path: str) -> int:
    """Return a descriptor to read a plain file; raises OSError for all else, without having opened it.

    The file is looked at through a descriptor that opens nothing (O_PATH), and opened through that: what the name
    leads to by then does not matter.
    """
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise OSError(errno.EINVAL, "not a plain file", path)
        return os.open(f"/proc/self/fd/{place}", _FLAGS)
    finally:
        os.close(place)
