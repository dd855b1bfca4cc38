"""/proc/PID/maps and smaps, and the files behind them. Format: proc(5)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_DELETED = " (deleted)"
_RESIDENT, _ANONYMOUS = _WANTED = "Rss:", "Anonymous:"


class MapsEntry(NamedTuple):
    """One line of /proc/PID/maps. `device` is "major:minor" in hex; inode 0 means no file."""

    start: int
    end: int
    executable: bool
    writable: bool
    file_offset: int
    device: str
    inode: int
    path: str
    deleted: bool = False
    readable: bool = True
    shared: bool = False


def parse_maps(text: str) -> list[MapsEntry]:
    """Parse the text of /proc/PID/maps; lines that do not look like one are left out."""
    return [entry for entry in map(_entry, text.splitlines()) if entry is not None]


def _entry(line: str) -> MapsEntry | None:
    fields = line.split(None, 5)
    if len(fields) < 5 or "-" not in fields[0]:
        return None
    start, _, end = fields[0].partition("-")
    path = fields[5] if len(fields) > 5 else ""
    deleted = path.endswith(_DELETED)
    return MapsEntry(
        int(start, 16), int(end, 16), "x" in fields[1], "w" in fields[1], int(fields[2], 16), fields[3],
        int(fields[4]), path.removesuffix(_DELETED), deleted, "r" in fields[1], "s" in fields[1],
    )


def parse_smaps(text: str) -> Iterator[tuple[MapsEntry, int, int]]:
    """Yield of the text of /proc/PID/smaps each mapping, its resident bytes, and of these the anonymous ones."""
    lines = text.splitlines()
    stride = next((n for n, line in enumerate(lines[1:], 1) if _entry(line) is not None), len(lines) or 1)
    at, also_at = (next((n for n, line in enumerate(lines) if line.startswith(name)), stride) for name in _WANTED)
    if max(at, also_at) >= stride:
        yield from _irregular(lines)
        return
    for first in range(0, len(lines) - also_at, stride):  # a kernel prints the same lines of each
        entry, resident, anonymous = _entry(lines[first]), lines[first + at], lines[first + also_at]
        if entry is None or not resident.startswith(_RESIDENT) or not anonymous.startswith(_ANONYMOUS):
            yield from _irregular(lines[first:])
            return
        yield entry, _bytes(resident), _bytes(anonymous)


def _irregular(lines: Iterable[str]) -> Iterator[tuple[MapsEntry, int, int]]:
    entry: MapsEntry | None = None
    resident = 0
    for line in lines:
        if line.startswith(_RESIDENT):
            resident = _bytes(line)
        elif line.startswith(_ANONYMOUS) and entry is not None:
            yield entry, resident, _bytes(line)
        else:
            entry = _entry(line) or entry


def _bytes(line: str) -> int:
    return int(line.split()[1]) * 1024


def read_maps(pid: int) -> list[MapsEntry]:
    """Read a process's mappings; empty where it is gone."""
    return parse_maps(maps_text(pid))


def maps_text(pid: int) -> str:
    """Return the text of /proc/PID/maps; nothing where the process is gone."""
    try:
        with open(f"/proc/{pid}/maps", "rb", buffering=0) as file:
            return os.fsdecode(file.read())
    except OSError:
        return ""


def paths_that_open(pid: int, entry: MapsEntry) -> tuple[str, ...]:
    """Return paths under which the mapped file can be opened from here, the surest first.

    map_files opens the very inode, even when it is unlinked, replaced, or in a container.
    """
    found = [f"/proc/{pid}/map_files/{entry.start:x}-{entry.end:x}"]
    if not entry.deleted:
        found += [f"/proc/{pid}/root{entry.path}", entry.path]
    return tuple(found)
