"""Processes that have their probes by events of places, and the threads that they have them by.

Forked children have, where there are many, and who makes them: links take the lock of every process that maps the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from tracer.kernel import bpf
from tracer.kernel.maps import Maps
from tracer.kernel.place_events import Breakpoints, PlaceEvents
from tracer.kernel.programs import Programs
from tracer.model import records

_LINK_SECONDS = 0.4
"""As long may links to children take in all: events cost each child less, but some seconds in the background when the
trace has ended."""
_CHILD_SECONDS, _MOST_SECONDS = 0.05, 2.0
"""What a child with links counts for at least, and how long one may wait for the programs of events."""


class ProcessEvents:
    """Keeps who has events, and says how the next ones are to be opened."""

    def __init__(self, programs: Programs, places: PlaceEvents, maps: Maps) -> None:
        self._programs, self._places = programs, places
        self._counted = maps.fds["BY_EVENTS"]
        self._shared = maps.view("SHARED", records.SHARED, 1)
        self._by_events: set[int] = set()
        """Processes that have their probes by events, as far as there was time for that."""
        self._tasks: dict[int, tuple[int, ...]] = {}
        """Of these the threads that have the events, where it is not the first."""
        self._kept: dict[int, dict[int, set[int]]] = {}
        """Of these where in which binary they have breakpoints."""
        self._expected: Breakpoints | None = None
        """What a process has of the breakpoints of events that are opened now; None: links are attached."""
        self._children_seconds = self._last_child_seconds = 0.0

    def note_child(self, seconds: float) -> None:
        """Take it that a child got its probes in so long. Where there are many, or links take long, begin to load what
        probes by events need."""
        self._places.stay()
        self._children_seconds += max(seconds, _CHILD_SECONDS)
        self._last_child_seconds = seconds
        if self._has_many_children:
            self._programs.prepare_events()

    @property
    def _has_many_children(self) -> bool:
        return self._places.can_be_added and (self._is_cheapest or self._children_seconds >= _LINK_SECONDS)

    @property
    def _is_cheapest(self) -> bool:
        """Whether events are worth it from the start: where the kernel has no links, each probe is an event anyhow,
        and the kernel waits for its readers twice for each whose place no other event has."""
        return not self._programs.probes.multi

    @contextmanager
    def first(self, pid: int, breakpoints: Breakpoints, *, loads: bool = False) -> Iterator[None]:
        """Give the process that the trace begins with events in the body, where its children will cost least by that.
        Nobody may be held yet. `loads`: where the kernel has links, load what events need."""
        if loads and self._places.can_be_added:
            self._programs.prepare_events()
            self._programs.wait_for_events(_MOST_SECONDS)
            self._children_seconds = _LINK_SECONDS
        if self._places.can_be_added and self._programs.of_events is not None:
            self._by_events.add(pid)
            self._expected = breakpoints
        with self._opening(pid):
            yield

    @contextmanager
    def _opening(self, pid: int) -> Iterator[None]:
        """Have what a process's events tell count once all of the body are there, and nothing else then: what it did
        before would be half seen, if it ran."""
        had = pid in self._kept
        try:
            yield
        finally:
            self._expected = None
            if not had and pid in self._kept:
                self._count_by_events(pid)

    @property
    def can_be_used(self) -> bool:
        """Whether processes can have their probes by events by now. While these are loaded, waits for it as long as the
        last child's links took."""
        if not self._has_many_children:
            return False
        if self._programs.of_events is not None:
            return True
        self._programs.wait_for_events(min(self._last_child_seconds, _MOST_SECONDS))
        return self._programs.of_events is not None

    def share(self, pid: int) -> None:
        """Take it that a process, which shares its maker's memory, meets its maker's events; attach by events what is
        attached to it from now on."""
        self._by_events.add(pid)

    def has(self, pid: int) -> bool:
        """Tell whether a process has its probes by events."""
        return pid in self._by_events

    @contextmanager
    def expecting(self, pid: int, breakpoints: Breakpoints) -> Iterator[None]:
        """Say what a process has of the breakpoints of what the body attaches, where that is done by events."""
        if pid not in self._by_events:
            yield
            return
        if self._places.claim():
            self._expected = breakpoints
        elif pid not in self._kept:
            self._by_events.discard(pid)
        with self._opening(pid):
            yield

    def counts(self, pid: int) -> bool:
        """Tell whether of a process nothing counts but what is told in the way of events: by links too, where there was
        no time for events."""
        return pid in self._kept

    @contextmanager
    def beginning(self, pid: int, is_held: Callable[[], bool] = lambda: True) -> Iterator[bool]:
        """Give a process that has all breakpoints events in the body, if that takes no longer than it can be held, and
        it `is_held` by then; tell the body so."""
        if by_events := self._places.claim() and is_held():
            self._by_events.add(pid)
            self._expected = Breakpoints.THERE
        with self._opening(pid):
            yield by_events

    def tasks(self, pid: int) -> tuple[int, ...]:
        """Return the threads that a process has its events by: while one of them lives."""
        return self._tasks.get(pid, (pid,))

    def move(self, pid: int, threads: Sequence[int]) -> None:
        """Open what is opened next for other threads of a process; one that executes a program is its first then."""
        self._tasks[pid] = tuple(threads)

    def moved(self, pid: int) -> None:
        """A process executes another program: its only thread has its number."""
        self._tasks.pop(pid, None)

    def kept(self, pid: int, binary_id: int) -> set[int]:
        """Return where in a binary's file a process has breakpoints by events."""
        return self._kept.get(pid, {}).get(binary_id, set())

    def forget(self, pid: int) -> None:
        """A process has ended, or keeps none of its events."""
        self._by_events.discard(pid)
        with suppress(FileNotFoundError):
            bpf.delete_element(self._counted, pid.to_bytes(4, "little"))
        self._kept.pop(pid, None)
        self._places.forget(pid)
        for tid in self._tasks.pop(pid, ()):
            self._places.forget(tid)

    def rest(self) -> None:
        """Nobody is held."""
        self._places.release()

    @property
    def are_opened(self) -> bool:
        """Whether events are to be opened for what is attached now."""
        return self._expected is not None

    def open(self, pid: int, binary_id: int, places: Iterable[int], numbers: Sequence[int], fds: list[int]) -> None:
        """Open the events of a process on places of a binary, by their numbers, and put their descriptors into `fds`,
        which has those that were opened where one could not be.

        Raises ProcessLookupError where the process is gone, OSError where the kernel refuses.
        """
        assert self._expected is not None
        had = len(fds)
        try:
            for tid in self.tasks(pid):
                try:
                    self._places.open(numbers, tid, self._expected, fds)
                except ProcessLookupError:
                    if tid == pid:
                        raise
        finally:
            if len(fds) > had:
                self._kept.setdefault(pid, {}).setdefault(binary_id, set()).update(places)

    def _count_by_events(self, pid: int) -> None:
        """Have what its events tell of a process count, and nothing else."""
        bpf.update_element(self._counted, pid.to_bytes(4, "little"), bytes(4))
        self._shared["published"] += 1
