"""Uprobe events in tracefs, which perf events can be opened on, and inherited by children.

The names there are one list for the whole machine, and outlive who made them. Those of a run are in a group of its
own, are removed at its end, and at the next start where it could not (Documentation/trace/uprobetracer.rst). The
kernel refuses to remove what is in use: so each event has one place, for of several it looks at the last one only.

Who closes them when is agreed on (`turns`). Runs that end do not at once: the name of an event tells its place, so that
the next run can take it over (`of_others`).
"""

from __future__ import annotations

import ctypes
import os
import secrets
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from tracer.binaries.file_version import FileVersion
from tracer.kernel.event_turns import EventTurns
from tracer.late_dataclasses import dataclass
from tracer.late_patterns import late_pattern

_MOUNTED = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
_LIST, _PROFILE = "uprobe_events", "uprobe_profile"
"""Files of tracefs, of which the second is opened for what all runs know it by alone."""
_PREFIX = "refleak_"
_OF_NAMESPACE = "n"
"""Stands before the inode of the pid namespace that a group's numbers are of."""
_FIRST_NAMESPACE = 0xEFFFFFFC
"""PROC_PID_INIT_INO of include/linux/proc_ns.h: whoever is in it sees all processes."""
_NR_FSOPEN, _NR_FSCONFIG, _NR_FSMOUNT = 430, 431, 432
_CLOEXEC, _CMD_CREATE = 1, 6
_TRIES = 5
"""Another run may take a new name, which is not in use yet, for one of a dead run."""
_CHUNK = 1 << 16
_STEP_SECONDS, _LONGEST_STEP_SECONDS, _PATIENCE_SECONDS = 0.02, 0.5, 1.0
_STALE_SECONDS = 10.0
"""So long events are waited for that are being closed: some 80 ms each."""
_MOST_OTHERS = 30_000
"""Events of other runs. To open one takes longer the more there are, since the kernel looks for it in a list of all:
some 35 us longer with 2,500. Links, which a child would have in their place, take a hundred times that. The kernel has
numbers for 65,535."""
_LISTED = late_pattern(r"([pr]):(\w+)/(at\d+_([0-9a-f]+_[0-9a-f]+)_([0-9a-f]+)_([0-9a-f]+)_([0-9a-f]+)) ")
"""Kind, group, name and, in it, file, version, code and offset."""


@dataclass(frozen=True)
class Place:
    """A place of a file, as the name of its event tells it. The event keeps the file's number from being used again."""

    file: str
    version: str
    """Of the file's bytes: the kernel keeps a copy of the instruction, which must not be used for another one."""
    code: str
    """Of what stands there: an instruction, and some more."""
    file_offset: int
    at_return: bool

    @staticmethod
    def of(version: FileVersion, file_offset: int, code: bytes, *, at_return: bool) -> Place:
        return Place(_file(version), _state(version), _checksum(code), file_offset, at_return)

    @property
    def name(self) -> str:
        return f"{self.file}_{self.version}_{self.code}_{self.file_offset:x}"


_Listed = tuple[str, str, Place | None]
"""Group, name and, where the name tells it, place."""


def _file(version: FileVersion) -> str:
    return f"{version.device:x}_{version.inode:x}"


def _state(version: FileVersion) -> str:
    state = f"{version.size} {version.mtime_ns} {version.digest.hex()}"
    return _checksum(state.encode())


def _checksum(data: bytes) -> str:
    return f"{zlib.crc32(data):x}"


def _open_tracefs() -> int | None:
    """Open tracefs where it is mounted, or else a mount of one's own that nobody sees; None where neither can be."""
    for place in _MOUNTED:
        with suppress(OSError):
            root = os.open(place, os.O_PATH | os.O_DIRECTORY)
            if os.access(_LIST, os.W_OK, dir_fd=root):
                return root
            os.close(root)
    return _mount_detached()


def _mount_detached() -> int | None:
    libc = ctypes.CDLL(None, use_errno=True)
    context: int = libc.syscall(_NR_FSOPEN, b"tracefs", _CLOEXEC)
    if context < 0:
        return None
    try:
        if libc.syscall(_NR_FSCONFIG, context, _CMD_CREATE, None, None, 0) < 0:
            return None
        root: int = libc.syscall(_NR_FSMOUNT, context, _CLOEXEC, 0)
        return root if root >= 0 else None
    finally:
        os.close(context)


class UprobeEvents:
    """The events of one run. Made before the process that closes what a killed run leaves, which removes them then."""

    def __init__(self) -> None:
        self._root = _open_tracefs()
        self._locks: list[int] = []
        if self._root is not None:
            try:
                self._locks += (self._open(name, os.O_RDONLY) for name in (_LIST, _PROFILE))
            except OSError:  # locked down for confidentiality: access(2) knows nothing of that
                for fd in self.descriptors:
                    os.close(fd)
                self._root = None
                self._locks.clear()
        self.turns = EventTurns(*self._locks or (None, None))
        self._token = f"{secrets.token_hex(8)}{_OF_NAMESPACE}{_namespace('self') or 0:x}"
        self.group = self._group(os.getpid())
        self._count = 0
        self.others = 0
        """Events that other runs had when this one began, and that it has not taken over: most of them wait to be
        closed."""
        self._of_others: dict[str, dict[str, Place]] = {}
        """Of these, by file, the places by the names."""
        self.runs_that_close = 0
        """How many runs had ended and had events to close still when it was looked last."""
        self.look()

    @property
    def can_be_had(self) -> bool:
        return self._root is not None

    @property
    def are_many(self) -> bool:
        """Whether so many events of other runs wait to be closed that there should be no more."""
        return self.others > _MOST_OTHERS

    @property
    def can_be_added(self) -> bool:
        return self.can_be_had and not self.are_many

    def _group(self, *pids: int) -> str:
        """Return a name that tells who keeps the events in use while it lives."""
        return f"{_PREFIX}{'_'.join(map(str, pids))}_{self._token}"

    def are_outlived_by(self, tracer: int, closer: int) -> None:
        """Say, before any is made, which process closes them."""
        self.group = self._group(tracer, closer)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Return the open files that are needed to remove the events."""
        return () if self._root is None else (self._root, *self._locks)

    def add(
        self, path: str, file_offset: int, *, at_return: bool = False, version: FileVersion | None = None,
        code: bytes = b"",
    ) -> int:  # fmt: skip
        """Make an event of one place of a file; return its number, by which perf_event_open(2) knows it. `version`: the
        file's, where other runs may take the event over; `code`: what stands there."""
        self._count += 1
        name = f"{self.group}/at{self._count}"
        if version is not None:
            name += f"_{Place.of(version, file_offset, code, at_return=at_return).name}"
        for left in reversed(range(_TRIES)):
            self._tell(f"{'r' if at_return else 'p'}:{name} {path}:{file_offset:#x}")
            try:
                return self.number_of(name)
            except FileNotFoundError:
                if not left:
                    raise
        raise AssertionError

    def of_others(self, version: FileVersion) -> dict[str, Place]:
        """Return the events that other runs had in a file when this one began, once for each file."""
        found = self._of_others.get(file := _file(version), {})
        self._of_others[file] = {name: place for name, place in found.items() if place.version != _state(version)}
        return {name: place for name, place in found.items() if place.version == _state(version)}

    def former_of_others(
        self, version: FileVersion, places: Collection[int], code_at: Callable[[int], bytes], *, waits: bool
    ) -> set[int]:
        """Return at which of some places in a file other runs had events when this one began, in something else that
        the file held before, with other code there. `waits`: until they are closed, for some time, which those runs are
        given the way for."""
        former = {
            name: place.file_offset for name, place in self._of_others.get(_file(version), {}).items()
            if place.version != _state(version) and place.file_offset in places
            and place.code != _checksum(code_at(place.file_offset))
        }  # fmt: skip
        left = set(former)
        if left and waits:
            had = self.turns.is_claimed
            self.turns.release()
            left = self._not_closed(left)
            if had:
                self.turns.claim()
        return {former[name] for name in left}

    def _not_closed(self, names: set[str]) -> set[str]:
        """Wait for events of other runs to be closed; return those that are not."""
        deadline = time.monotonic() + _STALE_SECONDS
        while names := names & {f"{group}/{name}" for group, name, _ in self._listed()}:
            if time.monotonic() >= deadline:
                break
            time.sleep(_STEP_SECONDS)
        return names

    def number_of(self, name: str) -> int:
        """Return the number of an event; raises FileNotFoundError where it has been removed."""
        return int(self._read(f"events/{name}/id"))

    def remove_all(self, patience_seconds: float = 0.0) -> bool:
        """Remove this run's events, and those of runs that are over; return whether none of its own is left. What is
        still in use is tried again for a while: another run may have taken it over, and removes it then."""
        if self._root is None:
            return True
        deadline, step = time.monotonic() + patience_seconds, _STEP_SECONDS
        listed = list(self._listed())
        over = self._over(listed)
        left = {f"{group}/{name}" for group, name, _ in listed if group in over}
        while left := self._in_use(left):
            if time.monotonic() >= deadline:
                return not any(name.startswith(f"{self.group}/") for name in left)
            time.sleep(step)
            step = min(2 * step, _LONGEST_STEP_SECONDS)
        return True

    @property
    def are_left(self) -> bool:
        """Whether there is a name of this run's, or of one that is over: this run may have been the last to use it."""
        listed = list(self._listed())
        return not self._over(listed).isdisjoint(group for group, _, _ in listed)

    def _over(self, listed: Iterable[_Listed]) -> set[str]:
        """Return this run's group, and those of runs that are over."""
        return {self.group, *_dead_groups(listed)}

    def look(self) -> None:
        """Remove what runs that were killed left behind, but not while their events are still being closed; note what
        events others have."""
        self.others = 0
        self._of_others.clear()
        listed = list(self._listed())
        self.runs_that_close = sum(map(_is_closing, {group for group, _, _ in listed}))
        over = _dead_groups(listed)
        dead = {f"{group}/{name}" for group, name, _ in listed if group in over}
        gone = dead - self._in_use(dead)
        for group, name, place in listed:
            if (full := f"{group}/{name}") not in gone:
                self.others += 1
                if place is not None:
                    self._of_others.setdefault(place.file, {})[full] = place

    def _in_use(self, names: Iterable[str]) -> set[str]:
        """Remove events; return those that are in use."""
        in_use = set()
        for name in names:
            try:
                self._tell(f"-:{name}")
            except FileNotFoundError:
                pass
            except OSError:
                in_use.add(name)
        return in_use

    def _listed(self) -> Iterator[_Listed]:
        """Give (group, name, place) of every run's events; no place where the name does not tell it."""
        if self._root is None:
            return
        with suppress(OSError):
            for line in self._read(_LIST).splitlines():
                group, _, name = line.split(" ", 1)[0][2:].partition("/")
                if group.startswith(_PREFIX):
                    found = _LISTED.match(line)
                    yield group, name, Place(
                        found[4], found[5], found[6], int(found[7], 16), at_return=found[1] == "r"
                    ) if found else None

    def _open(self, name: str, flags: int) -> int:
        return os.open(name, flags | os.O_CLOEXEC, dir_fd=self._root)

    def _tell(self, command: str) -> None:
        file = self._open(_LIST, os.O_WRONLY)
        try:
            os.write(file, command.encode())
        finally:
            os.close(file)

    def _read(self, path: str) -> str:
        file = self._open(path, os.O_RDONLY)
        try:
            parts = []
            while part := os.read(file, _CHUNK):
                parts.append(part)
            return b"".join(parts).decode(errors="replace")
        finally:
            os.close(file)

    def close(self) -> bool:
        """Remove this run's events and let go of tracefs; return whether that is done: none is in use any more."""
        if not self.remove_all(_PATIENCE_SECONDS):
            return False
        for fd in self.descriptors:
            os.close(fd)
        self._root, self.turns = None, EventTurns(None, None)
        self._locks.clear()
        return True


def _dead_groups(listed: Iterable[_Listed]) -> set[str]:
    """Return the groups that nobody keeps. Each is asked for once: it may have a hundred events."""
    return {group for group in {group for group, _, _ in listed} if not _is_kept(group)}


def _named_for(group: str) -> tuple[list[str], int]:
    """Return the numbers of the processes that a group is named for, and the inode of their pid namespace, or 0."""
    *pids, token = group.removeprefix(_PREFIX).split("_")
    return pids, int(token.partition(_OF_NAMESPACE)[2] or "0", 16)


def _is_kept(group: str) -> bool:
    """Tell whether one of the processes that a group is named for lives. Those of another pid namespace are known to
    have ended where all namespaces are seen, and nobody lives in that one."""
    pids, theirs = _named_for(group)
    if theirs in (0, own := _namespace("self")):
        return any(Path("/proc", pid).exists() for pid in pids)
    if own != _FIRST_NAMESPACE:
        return True
    return any(_namespace(place.name) == theirs for place in Path("/proc").iterdir() if place.name.isdigit())


def _is_closing(group: str) -> bool:
    """Tell whether the run has ended, and the process that outlives it has not: of those of this pid namespace."""
    pids, theirs = _named_for(group)
    if len(pids) != 2 or theirs not in (0, _namespace("self")):
        return False
    tracer, closer = (Path("/proc", pid).exists() for pid in pids)
    return closer and not tracer


def _namespace(process: str) -> int | None:
    """Return the inode of a process's pid namespace (pid_namespaces(7)); None where it is gone."""
    try:
        return Path("/proc", process, "ns/pid").stat().st_ino
    except OSError:
        return None
