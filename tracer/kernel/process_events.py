"""Processes that have their probes by events of places, and the threads that they have them by.

All have where forks are followed: links take the lock of every process that maps the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from tracer.kernel import bpf
from tracer.kernel.maps import Maps
from tracer.kernel.place_events import Breakpoints, PlaceEvents
from tracer.kernel.programs import Programs
from tracer.model import records


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

    @contextmanager
    def first(self, pid: int, breakpoints: Breakpoints) -> Iterator[None]:
        """Give the process that the trace begins with events in the body, where its children will have them. Nobody may
        be held yet."""
        if self.can_be_used:
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
        """Whether processes have their probes by events: else by links, or by a perf event of their own for each."""
        return not self._programs.probes.multi and self._places.can_be_added

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
        if pid in self._by_events:
            self._places.claim()
            self._expected = breakpoints
        with self._opening(pid):
            yield

    def counts(self, pid: int) -> bool:
        """Tell whether of a process nothing counts but what is told in the way of events, by whatever else is attached
        too."""
        return pid in self._kept

    @contextmanager
    def beginning(self, pid: int) -> Iterator[None]:
        """Give a process that has all breakpoints events in the body."""
        self._places.claim()
        self._by_events.add(pid)
        self._expected = Breakpoints.THERE
        with self._opening(pid):
            yield

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
