"""The file that a report goes to: written whole, or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tracer.errors import CannotWrite
from tracer.recording.output_place import is_in_place, output_place


@contextmanager
def report_file(path: Path) -> Iterator[BinaryIO]:
    """Give a stream to write to; at the end, what was written stands under `path`, unless the body raised.

    The old file stays until then, and keeps its owner and mode; a link is followed (see output_place). What is no
    regular file, and a file in a directory that is not ours to change, is written in place. Raises CannotWrite.
    """
    try:
        target = output_place(path)
        if is_in_place(target) or not os.access(target.parent, os.W_OK):
            with open(target, "wb", opener=_open_there) as stream:
                yield stream
            return
        with _replacement(target) as stream:
            yield stream
    except OSError as error:
        raise CannotWrite(f"cannot write {path}: {error.strerror or error}") from None


def _open_there(path: str, flags: int) -> int:
    """Open what is there; a link only where it was one when it was judged."""
    return os.open(path, flags | (0 if Path(path).is_symlink() else os.O_NOFOLLOW), 0o666)


@contextmanager
def _replacement(target: Path) -> Iterator[BinaryIO]:
    path = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.new")  # known before it is there
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            _take_owner_and_mode(descriptor, target)
            os.fsync(descriptor)
        path.replace(target)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def _take_owner_and_mode(descriptor: int, target: Path) -> None:
    try:
        old = target.stat()
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        os.fchmod(descriptor, 0o666 & ~mask)
        return
    with suppress(PermissionError):
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
