"""Books of address spaces that have ended, taken out of the kernel side's maps: these have room for so many at once,
and a trace may be of a hundred thousand processes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tracer.kernel import bpf
from tracer.kernel.fronts import take_from_live_front
from tracer.kernel.known_spaces import known_process, space_totals
from tracer.kernel.maps import Maps
from tracer.model import records
from tracer.model.addresses import Space, space_number, space_numbers
from tracer.model.distinct_values import is_in_ordered
from tracer.model.records import ProcessState
from tracer.model.snapshot import Loss, Records
from tracer.spaces.listener import Moment, SpaceListener
from tracer.spaces.processes import ProcessTable

_SHARE, _SCARCE = 4, 2
"""Taken out when a quarter of the room is theirs; with half of it at once."""
_REST = 50
"""So many times as long as it took it is left alone: of a big process that goes on it walks millions of blocks."""
_MOST_ENDED = 2048
"""Address spaces: of what fills other maps, objects and ghosts, it is not known who has them."""
_MOST_TAKEN = 4
"""How many times as many blocks as the kernel side has room for are kept here: 64 bytes each."""
_AT_ONCE = 256
"""Pids: to take each out takes 15 us, and somebody may be held."""
_AHEAD = 1024
"""Pids that the next forks may get: theirs may be written at any moment."""
_LAST_GENERATION = 60_000
"""Of 65,535: pids would have to come round a thousand times."""
_CHUNK = 16384
"""Elements that are read together."""
_FREE_TIME = np.dtype([("time_ns", "<u8")])
_BOOKS = {
    "SPACE_TOTALS": (records.KEY, records.SPACE_TOTALS), "LIVE": (records.KEY, records.ALLOCATION),
    "GHOSTS": (records.KEY, records.GHOST), "OLDER_GHOSTS": (records.GHOST_KEY, records.GHOST),
    "INHERITED_FREES": (records.KEY, _FREE_TIME), "OBJECTS": (records.KEY, records.OBJECT),
    "BY_OBJECT": (records.KEY, records.COUNTERS),
}  # fmt: skip
"""By address space: the types of keys and values."""


class EndedBooks(SpaceListener):
    """Hears who ends; `tend`, called now and then, takes out what of them is of no more use to the kernel side, and
    `read` adds it to what a map has."""

    def __init__(self, maps: Maps, processes: ProcessTable) -> None:
        self._maps, self._processes = maps, processes
        self._shared = maps.view("SHARED", records.SHARED, 1)
        self._ended: list[Space] = []
        self._blocks = self._frees = 0
        """What these left alive, and what they freed that was not theirs."""
        self._still_used = 0
        """How many of these were of use when they were looked at last: living ones began as copies of them."""
        self._next_s = 0.0
        """When it may be looked at again, by time.monotonic."""
        self._leaving: deque[int] = deque()
        self._not_yet: set[int] = set()
        self._taken: dict[str, list[tuple[Records, Records]]] = {name: [] for name in _BOOKS}
        self._kept = self._refused = 0

    def ended(self, space: Space, moment: Moment) -> None:
        self._ended.append(space)
        totals = space_totals(self._maps, space)
        if totals is not None:
            self._blocks += max(0, int(totals["made"]) - int(totals["freed"]))
            self._frees += int(totals["unknown_frees"])

    @property
    def losses(self) -> Iterator[Loss]:
        if self._refused:
            yield Loss("block of a process that has ended not kept: too many", self._refused, "--max-objects")

    def read(
        self, name: str, between: Callable[[], None] | None = None, chunk: int = _CHUNK
    ) -> tuple[Records, Records]:
        """Return the keys and values of a map, and those that were taken out of it. `between`: see Maps.read."""
        keys, values = self._maps.read(name, *_BOOKS[name], chunk, between)
        taken = self._taken[name]
        if not taken:
            return keys, values
        return np.concatenate([keys, *(k for k, _ in taken)]), np.concatenate([values, *(v for _, v in taken)])

    def tend(self, between: Callable[[], None]) -> None:
        """Take out what there is, if it is much. All records of the control ring must have been handled: who was forked
        by those that have ended must be known. `between`: what is to be done between the parts of a long walk."""
        if self._leaving:
            self._remove_processes()
        elif self._is_due:
            in_use = self._processes.spaces_in_use
            spent = [space for space in self._ended if space not in in_use]
            self._ended = [space for space in self._ended if space in in_use]
            self._still_used = len(self._ended)
            self._blocks = self._frees = 0
            if spent:
                began = time.monotonic()
                self._take(spent, between)
                self._next_s = time.monotonic() + _REST * (time.monotonic() - began)
                self._leaving.extend(self._not_yet.union(pid for pid, _ in spent))
                self._not_yet.clear()

    @property
    def _is_due(self) -> bool:
        is_much = len(self._ended) - self._still_used >= _MOST_ENDED or self._fill(_SHARE)
        return is_much and (time.monotonic() >= self._next_s or self._fill(_SCARCE))

    def _fill(self, share: int) -> bool:
        room = self._maps.entries
        return (
            (len(self._ended) - self._still_used) * share >= room["PROCESSES"]
            or self._blocks * share >= room["LIVE"] or self._frees * share >= room["INHERITED_FREES"]
        )  # fmt: skip

    def _take(self, spaces: list[Space], between: Callable[[], None]) -> None:
        numbers = np.sort(np.array([space_number(space) for space in spaces], np.uint64))
        self._keep("LIVE", *take_from_live_front(self._maps, numbers))
        for name, (key, value) in _BOOKS.items():
            keys, values = self._maps.read(name, key, value, _CHUNK, between)
            chosen = is_in_ordered(space_numbers(keys["key"] if "key" in (key.names or ()) else keys), numbers)
            keys, values = keys[chosen], values[chosen]
            if len(keys):
                bpf.delete_elements(self._maps.fds[name], keys)
                self._keep(name, keys, values)

    def _keep(self, name: str, keys: Records, values: Records) -> None:
        if name == "LIVE":
            room = max(0, _MOST_TAKEN * self._maps.entries["LIVE"] - self._kept)
            self._refused += max(0, len(keys) - room)
            keys, values = keys[:room], values[:room]
            self._kept += len(keys)
        if len(keys):
            self._taken[name].append((keys, values))

    def _remove_processes(self) -> None:
        """Take some pids out of the kernel side's processes, so that others have room: none that runs, and none that a
        process may get next."""
        last, end = _pids()
        alive, in_use = set(self._processes.living), self._processes.spaces_in_use
        for _ in range(min(_AT_ONCE, len(self._leaving))):
            pid = self._leaving.popleft()
            if (pid - last) % end <= _AHEAD:
                self._not_yet.add(pid)
            elif pid not in alive:  # else it comes again when that one has ended
                self._remove_process(pid, in_use)

    def _remove_process(self, pid: int, in_use: set[Space]) -> None:
        process = known_process(self._maps, pid)
        if process is None or process["state"] != ProcessState.ENDED or process["own_generation"] > _LAST_GENERATION:
            return
        if (pid, int(process["generation"])) in in_use:  # its pid was another's before
            self._not_yet.add(pid)
            return
        last = self._shared["last_generation"]
        last[0] = max(int(last[0]), int(process["own_generation"]))
        for name in ("PROCESSES", "TABLE_OF"):
            bpf.delete_elements(self._maps.fds[name], np.array([pid], "<u4"))


def _pids() -> tuple[int, int]:
    """Return the pid that the last process got, as proc_loadavg(5) tells it, and how many there are. Where that is not
    to be read, each is taken to be next."""
    try:
        last = int(Path("/proc/loadavg").read_text().rsplit(maxsplit=1)[-1])
        return last, int(Path("/proc/sys/kernel/pid_max").read_text())
    except (OSError, ValueError):
        return 0, _AHEAD
