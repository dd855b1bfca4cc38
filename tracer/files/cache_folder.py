"""The folder where refleak keeps what is dear to make. Root's is root's own: it loads programs into the kernel from it.

Neither HOME nor XDG_CACHE_HOME says where root's is, since sudo can hand on both from another user. A folder or file
that somebody else could have written is refused, and the trace goes on without it.
"""

from __future__ import annotations

import atexit
import errno
import os
import secrets
import stat
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

VARIABLE = "REFLEAK_CACHE"
OF_ROOT = Path("/var/cache/refleak")

_FLAGS_OF_USER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER = _FLAGS_OF_USER | os.O_NOFOLLOW
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40
ABANDONED_SECONDS = 3600
"""So old is what a run that died left half written."""

refusals: dict[str, None] = {}
"""Why something of the cache was not used, in order: told once, at the end."""
_crowded: dict[tuple[Path, str], int] = {}
"""Folders and kinds of which files were written, and how many bytes may stay."""


class Refused(OSError):
    """A folder or file that is not ours alone."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(errno.EPERM, reason, str(path))
        refusals[f"{path} {reason}"] = None


def cache_directory() -> Path:
    """Return where the cache is: $REFLEAK_CACHE; else root's own, or $XDG_CACHE_HOME/refleak, or ~/.cache/refleak.

    Raises RuntimeError where a user has no home directory.
    """
    given = os.environ.get(VARIABLE, "")
    if given.startswith("/"):
        return Path(given)
    if os.geteuid() == 0:
        return OF_ROOT
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path("~/.cache").expanduser()) / "refleak"


def open_folder(path: Path, *, create: bool = False, mode: int = 0o700) -> int:
    """Return a descriptor of a folder that only this user can write to; raises Refused, OSError.

    For root every folder above it must be safe too, so that nobody can put another one in its place. `mode`: of one
    that is made.
    """
    if create:
        _make(path, mode)
    fd = _walk(path) if os.geteuid() == 0 else os.open(path, _FLAGS_OF_USER)
    try:
        _check(os.fstat(fd), path, own=True)
    except OSError:
        os.close(fd)
        raise
    return fd


def _make(path: Path, mode: int) -> None:
    as_root = os.geteuid() == 0
    for folder in (*reversed(path.parents), path):
        if folder.is_dir():
            continue
        if as_root:
            os.close(_walk(folder.parent))  # nothing is made below what is not safe
        given = 0o755 if as_root and folder != path else mode
        with suppress(FileExistsError):
            folder.mkdir(mode=given)
            folder.chmod(given)  # whatever the umask


def _walk(path: Path) -> int:
    """Open a folder step by step: links are followed where only root or this user could have made them."""
    parts, links = deque(path.parts[1:]), 0
    trail = [os.open("/", _FOLDER)]
    try:
        while parts:
            part = parts.popleft()
            _check(os.fstat(trail[-1]), path, own=False)
            status = os.stat(part, dir_fd=trail[-1], follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
                to = Path(os.readlink(part, dir_fd=trail[-1]))
                parts.extendleft(reversed(to.parts[1:] if to.is_absolute() else to.parts))
                if to.is_absolute():
                    _close(trail[1:])
                    del trail[1:]
            elif part != "..":
                trail.append(os.open(part, _FOLDER, dir_fd=trail[-1]))
            elif len(trail) > 1:
                os.close(trail.pop())
        _check(os.fstat(trail[-1]), path, own=False)
        return os.dup(trail[-1])
    finally:
        _close(trail)


def _close(descriptors: Iterable[int]) -> None:
    for fd in descriptors:
        os.close(fd)


def _check(status: os.stat_result, path: Path | str, *, own: bool) -> None:
    owners = (os.geteuid(),) if own else (0, os.geteuid())
    if status.st_uid not in owners:
        raise Refused(path, "is another user's")
    if status.st_mode & _OTHERS_WRITE:
        raise Refused(path, "can be written by others" if own else "is below a folder that others can write to")


def read_own(path: Path) -> bytes:
    """Read a file of the cache; raises Refused where others could have written it, OSError."""
    folder = open_folder(path.parent)
    try:
        fd = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Refused(path, "is a link") from None
        raise
    finally:
        os.close(folder)
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise Refused(path, "is no plain file")
        _check(status, path, own=True)
        return file.read()


def write_shared(path: Path, *parts: bytes) -> None:
    """Write a file that others may read, as `write_own` does."""
    write_own(path, *parts, mode=0o644, folder_mode=0o755)


def write_own(path: Path, *parts: bytes, mode: int = 0o600, folder_mode: int = 0o700) -> None:
    """Write a file of the cache: all of it or nothing; raises Refused, OSError."""
    folder = open_folder(path.parent, create=True, mode=folder_mode)
    name = f"new-{secrets.token_hex(8)}"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(name, flags, mode, dir_fd=folder), "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.writelines(parts)
        os.replace(name, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise
    finally:
        os.close(folder)


def evict_later(directory: Path, suffix: str, limit_bytes: int) -> None:
    """Have `evict` done when this process ends: somebody may be held now. One that is killed leaves it to the next."""
    if not _crowded:
        atexit.register(evict_crowded)
    _crowded[directory, suffix] = limit_bytes


def evict_crowded() -> None:
    """Do what was put off."""
    while _crowded:
        (directory, suffix), limit_bytes = _crowded.popitem()
        with suppress(OSError):
            evict(directory, suffix, limit_bytes)


def evict(directory: Path, suffix: str, limit_bytes: int) -> None:
    """Remove the files of a kind that were not used for the longest time until the rest fits, and what a dead run left.

    Raises OSError.
    """
    found = []
    now = time.time()
    with os.scandir(directory) as entries:
        for entry in entries:
            is_kind, is_new = entry.name.endswith(suffix), entry.name.startswith("new-")
            if is_kind or is_new:
                with suppress(FileNotFoundError):  # another run removed it
                    status = entry.stat(follow_symlinks=False)
                    if is_kind:
                        found.append((status.st_mtime_ns, status.st_size, entry.path))
                    elif now - status.st_mtime > ABANDONED_SECONDS:
                        Path(entry.path).unlink()
    excess = sum(size for _, size, _ in found) - limit_bytes
    if excess <= 0:
        return
    for _, size, path in sorted(found):
        with suppress(FileNotFoundError):
            Path(path).unlink()
        excess -= size
        if excess <= 0:
            return
