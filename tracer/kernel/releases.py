"""Releases of threads that are held: each waits until its slot, by its number, has its ticket.

A process may have made as many children as there are slots: then it and the last one, both held, share one.
"""

from __future__ import annotations

import threading
import time

from tracer.kernel.known_threads import stands
from tracer.kernel.maps import Maps
from tracer.late_dataclasses import dataclass
from tracer.model import records

SOON_SECONDS = 0.001
"""After which `again` is to be called where somebody waits for it."""
_DOUBT_SECONDS = 0.05
"""So long one that does not stand held may only be about to: a thread tells of itself before that."""


@dataclass(frozen=True)
class _Release:
    tid: int
    ticket: int
    since: float


class Releases:
    """Lets threads go on, from any thread of this process."""

    def __init__(self, maps: Maps) -> None:
        self._slots = maps.view("SHARED", records.SHARED, 1)["released"][0]
        self._maps = maps
        self._last: dict[int, list[_Release]] = {}
        """By slot, the oldest first: those that may not have seen it yet, and the last one."""
        self._shared: set[int] = set()
        """Slots with more than one of these."""
        self._lock = threading.Lock()

    def release(self, tid: int, ticket: int) -> None:
        """Let a thread go on that told of itself with this ticket."""
        slot = tid % records.HOLD_SLOTS
        with self._lock:
            before = [one for one in self._last.get(slot, ()) if one.tid != tid]
            self._last[slot] = [*before, _Release(tid, ticket, time.monotonic())]
            if before:
                self._shared.add(slot)
                self._look(slot)
            else:
                self._slots[slot] = ticket

    @property
    def has_waiting(self) -> bool:
        """Whether somebody may wait for `again`."""
        return bool(self._shared)

    def again(self) -> None:
        """Let those go on whose slot another one had."""
        with self._lock:
            for slot in tuple(self._shared):
                self._look(slot)

    def _look(self, slot: int) -> None:
        """Give the slot to the first that stands held, else to the last; forget those that are known to be gone."""
        now, left, held = time.monotonic(), [], None
        *before, last = self._last[slot]
        for one in before:
            is_held = stands(self._maps, one.tid, one.ticket)
            if is_held or now - one.since < _DOUBT_SECONDS:
                left.append(one)
            if is_held and held is None:
                held = one
        self._slots[slot] = (held or last).ticket
        self._last[slot] = [*left, last]
        if not left:
            self._shared.discard(slot)
