"""Memory that this process may still use: what the machine has left, and each limit of the cgroups that it is in.

Formats: proc_meminfo(5), cgroups(7); Documentation/admin-guide/cgroup-v2.rst ("Memory") and cgroup-v1/memory.rst.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tracer.late_dataclasses import dataclass

THIS_MACHINE = "this machine"
_ROOTS = {"": ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"), "memory": ("/sys/fs/cgroup/memory",)}
"""Where the trees of cgroups are mounted, by the controllers that /proc/self/cgroup names: none of version 2."""
_LIMIT, _USED = ("memory.max", "memory.limit_in_bytes"), ("memory.current", "memory.usage_in_bytes")
_RECLAIMED = ("total_inactive_file", "inactive_file")
"""Of files that were not used lately: the kernel takes that back before it ends a process. The first is version 1's."""


@dataclass(frozen=True)
class MemoryRoom:
    size: int
    """In bytes."""
    limit: str
    """Whose limit it is, as a noun."""


def memory_room(root: Path = Path("/")) -> MemoryRoom | None:
    """Return the least of what is left; None where nothing says. `root`: the folder with `proc` and `sys`."""
    rooms = [*_of_machine(root), *_of_cgroups(root)]
    return min(rooms, key=lambda room: room.size, default=None)


def _of_machine(root: Path) -> Iterator[MemoryRoom]:
    for line in _text(root / "proc/meminfo").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable" and value.split():
            yield MemoryRoom(int(value.split()[0]) << 10, THIS_MACHINE)


def _of_cgroups(root: Path) -> Iterator[MemoryRoom]:
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        for name, mounts in _ROOTS.items():
            if name == controllers or name in controllers.split(","):
                yield from _of_branch([root / mount.lstrip("/") for mount in mounts], PurePosixPath(path))


def _of_branch(mounts: list[Path], path: PurePosixPath) -> Iterator[MemoryRoom]:
    """Yield the room in a cgroup and those above it. In a container its own is the root that is mounted."""
    for place in (path, *path.parents):
        for mount in mounts:
            folder = mount / str(place).lstrip("/")
            limit, used = _number(folder, _LIMIT), _number(folder, _USED)
            if limit is not None and used is not None:
                room = limit - used + _reclaimed(folder)
                yield MemoryRoom(max(0, min(room, limit)), f"the cgroup {place}")


def _reclaimed(folder: Path) -> int:
    rows = dict(line.split() for line in _text(folder / "memory.stat").splitlines() if len(line.split()) == 2)
    return next((int(rows[name]) for name in _RECLAIMED if name in rows), 0)


def _number(folder: Path, names: tuple[str, ...]) -> int | None:
    """Return what one of some files says; None where none is there, or says `max`."""
    texts = (_text(folder / name).strip() for name in names)
    return next((int(text) for text in texts if text.isdecimal()), None)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
