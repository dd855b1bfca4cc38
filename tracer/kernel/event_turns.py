"""Turns of refleak's runs, all of which make, open and close uprobe events under one lock of the kernel's.

To take an event out of use the kernel waits some 80 ms for its readers, and whoever makes or opens one waits meanwhile
(event_mutex of kernel/trace/trace_events.c): for ever, if it holds a thread in a program, which is such a reader. So a
run that traces has `claimed` them, and those that have ended close theirs when none has, each event in a `turn`.

These are in a `queue`, so that one at a time is closing: for a run that begins a hundred together would be a hundred
times that wait. What is locked of a file is let go of by whoever is killed (flock(2)).
"""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from tracer.kernel.blocked_signals import block_signals

_STEP_SECONDS, _LONG_STEP_SECONDS = 0.02, 0.1
"""Between two tries to lock, for who waits for a turn, and for those in the queue."""


class EventTurns:
    """Of one run, and of the process that closes its events later: they have the open files in common, by which the
    kernel knows them. `events`, `queue`: files that all runs can open, None where there are no events."""

    def __init__(self, events: int | None, queue: int | None) -> None:
        self._events, self._queue = events, queue
        self._claim: threading.Thread | None = None
        """Waits for the claim: it goes on where whoever asked for it does not wait any longer."""
        self._claimed = threading.Event()

    @property
    def is_claimed(self) -> bool:
        """Whether that was asked for."""
        return self._claim is not None

    def claim(self, patience_seconds: float = 1.0) -> bool:
        """Have runs that end wait from now on; tell whether none of them closes an event just now."""
        if self._events is None:
            return False
        if self._claim is None:
            self._claimed.clear()
            self._claim = threading.Thread(target=self._wait_for_claim, args=(self._events,), daemon=True, name="claim")
            self._claim.start()
        return self._claimed.wait(patience_seconds)

    def _wait_for_claim(self, events: int) -> None:
        block_signals()
        with suppress(OSError):
            fcntl.flock(events, fcntl.LOCK_SH)
            self._claimed.set()

    def release(self) -> None:
        """Let runs that end go on."""
        if self._events is not None and self._claimed.is_set():
            fcntl.flock(self._events, fcntl.LOCK_UN)
            self._claimed.clear()
            self._claim = None

    def give_up(self) -> None:
        """Release the claim of the process that this one outlives."""
        if self._events is not None:
            fcntl.flock(self._events, fcntl.LOCK_UN)

    def turn(self, deadline: float) -> AbstractContextManager[bool]:
        """Wait until no other run makes or opens events, or until then (time.monotonic), and have them wait while the
        body closes one."""
        return _locked(self._events, deadline, _STEP_SECONDS)

    def queue(self, deadline: float = 0.0) -> AbstractContextManager[bool]:
        """Wait until no other run that has ended is closing events, or until then; tell the body whether that is so."""
        return _locked(self._queue, deadline, _LONG_STEP_SECONDS)


@contextmanager
def _locked(file: int | None, deadline: float, step: float) -> Iterator[bool]:
    """Lock a file for this run alone while the body runs, if that can be done in time; tell the body whether it is, or
    there is none to wait for."""
    if file is None:
        yield True
        return
    is_locked = _is_locked(file, deadline, step)
    try:
        yield is_locked
    finally:
        if is_locked:
            fcntl.flock(file, fcntl.LOCK_UN)


def _is_locked(file: int, deadline: float, step: float) -> bool:
    while True:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(step)
