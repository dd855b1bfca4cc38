"""Output places that a user names: through no link that somebody else laid, and into no file that was not meant.

What root writes can be named in another user's folder. A file is made anew under a name that nobody can foresee and
takes its place at once; devices and pipes are written to as they are.
"""

from __future__ import annotations

import errno
import io
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from tracer.errors import CannotWrite

_MOST_LINKS = 40
_NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def output_place(path: Path) -> Path:
    """Return what a path leads to; the path itself where that is no plain file.

    A link is followed, for root only one of root's own: in another user's folder it could lead anywhere. One that
    leads to nothing stays, and the file is made where it leads. Raises CannotWrite.
    """
    for _ in range(_MOST_LINKS):
        try:
            status = path.lstat()
        except OSError:  # not there yet; else opening it says what is wrong
            return path
        if not stat.S_ISLNK(status.st_mode):
            return path
        if os.geteuid() == 0 and status.st_uid != 0:
            raise CannotWrite(f"cannot write {path}: it is a link of another user's", "name the file that is meant")
        if str(path).startswith("/proc/") or not _is_plain(path):
            return path
        path = path.parent / path.readlink()
    raise CannotWrite(f"cannot write {path}: {os.strerror(errno.ELOOP)}")


def is_in_place(path: Path) -> bool:
    """Return whether output to a place is written as it is: to a device, a pipe, or an open file of a process."""
    return path.is_symlink() or (path.exists() and not path.is_file())


def check_writable(path: Path) -> None:
    """Raise CannotWrite or OSError where a file cannot be written; leave nothing behind."""
    place = output_place(path)
    try:
        os.close(os.open(place, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY))
    except FileNotFoundError:
        os.close(os.open(place, os.O_WRONLY | _NEW, 0o600))
        place.unlink()
    except OSError as error:
        if error.errno != errno.ENXIO:  # a pipe that nobody reads yet
            raise


def open_new(place: Path) -> tuple[io.FileIO, Path]:
    """Make a file in the folder of `place` under a name of its own."""
    path = place.with_name(f".{place.name[:100]}.{secrets.token_hex(8)}.new")
    return io.FileIO(os.open(path, os.O_RDWR | _NEW, 0o666), "r+"), path


def open_replacing(path: Path) -> io.RawIOBase:
    """Open an empty file, for reading too, in the place of what is there; raises CannotWrite, OSError."""
    place = output_place(path)
    if is_in_place(place):
        return open(place, "w+b", buffering=0)
    file, made = open_new(place)
    try:
        made.replace(place)
    except BaseException:
        file.close()
        with suppress(OSError):
            made.unlink()
        raise
    return file


def _is_plain(path: Path) -> bool:
    """Tell whether a link leads to a plain file, or to nothing."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return True
