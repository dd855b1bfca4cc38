"""Holds that stand in the traced tree only, and in all of it: what a task has, its children inherit.

A perf event on a uprobe event of tracefs, opened with `inherit` on a task and without a program, keeps the breakpoint
in that task's memory, in its forked children's and in whatever they exec. The program hangs on another perf event of
the same uprobe event, which nobody inherits: the kernel runs it for each hit, whoever the breakpoint is there for. An
inherited event with a program would cost 40 ms at each end of a thread (perf_event_detach_bpf_prog).
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tracer.kernel import bpf
from tracer.kernel.uprobe_events import UprobeEvents

_Place = tuple[int, int, int]


class TreeHolds:
    """`keep` is given each descriptor with its binary's id: whoever closes one takes its breakpoints away."""

    def __init__(self, events: UprobeEvents, program: int | None, keep: Callable[[int, int], None]) -> None:
        self._events, self._program, self._keep = events, program, keep
        self._numbers: dict[_Place, int] = {}

    def attach(self, pid: int, binary_id: int, path: str, file_offset: int, cookie: int, *, at_return: bool) -> None:
        """Have the program run wherever a process, and what it makes from now on, comes to a place of a file.

        Raises ProcessLookupError where the process is gone, OSError where the kernel refuses.
        """
        if not self._events.can_be_had:
            raise FileNotFoundError(errno.ENOENT, "no tracefs")
        number = self._number((binary_id, file_offset, cookie), path, at_return)
        seen: set[int] = set()
        while new := _threads(pid) - seen:  # those that these make meanwhile inherit it
            seen |= new
            for tid in new:
                self._open(binary_id, number, tid)
        if not seen:
            raise ProcessLookupError

    def forget(self) -> None:
        """Take it that all that was kept is closed: each place gets another event when it is next attached to."""
        self._numbers.clear()

    def _number(self, place: _Place, path: str, at_return: bool) -> int:
        """Return the number of the uprobe event of a place; the first time it is made, and the program put on it."""
        if place not in self._numbers:
            binary_id, file_offset, cookie = place
            number = self._events.add(path, file_offset, at_return=at_return)
            event = bpf.open_trace_event(number, 0, inherit=False)
            self._keep(binary_id, event)
            assert self._program is not None
            self._keep(binary_id, bpf.link_perf_event(self._program, event, cookie))
            self._numbers[place] = number
        return self._numbers[place]

    def _open(self, binary_id: int, number: int, tid: int) -> None:
        with suppress(ProcessLookupError):
            self._keep(binary_id, bpf.open_trace_event(number, tid, inherit=True))


def _threads(pid: int) -> set[int]:
    try:
        return {int(place.name) for place in Path("/proc", str(pid), "task").iterdir()}
    except (FileNotFoundError, ProcessLookupError):
        return set()
