"""Holds that stand in the traced tree only, and in all of it: what a task has, its children inherit.

A perf event on a uprobe event of tracefs, opened with `inherit` on a task and without a program, keeps the breakpoint
in that task's memory, in its forked children's and in whatever they exec. The program hangs on another perf event of
the same uprobe event, which nobody inherits (tracer.kernel.place_events). An inherited event with a program would cost
40 ms at each end of a thread (perf_event_detach_bpf_prog).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tracer.binaries.open_binaries import OpenBinary
from tracer.kernel import bpf
from tracer.kernel.place_events import PlaceEvents


class TreeHolds:
    """`keep` is given each descriptor with its binary's id: whoever closes one takes its breakpoints away."""

    def __init__(self, events: PlaceEvents, program: int | None, keep: Callable[[int, int], None]) -> None:
        self._events, self._program, self._keep = events, program, keep

    def attach(self, pid: int, binary: OpenBinary, file_offset: int, cookie: int, *, at_return: bool) -> None:
        """Have the program run wherever a process, and what it makes from now on, comes to a place of a file.

        Raises ProcessLookupError where the process is gone, OSError where the kernel refuses.
        """
        assert self._program is not None
        number = self._events.number(binary, file_offset, self._program, cookie, at_return=at_return)
        seen: set[int] = set()
        while new := _threads(pid) - seen:  # those that these make meanwhile inherit it
            seen |= new
            for tid in new:
                self._events.keep_apart(tid)
                with suppress(ProcessLookupError):
                    self._keep(binary.id, bpf.open_trace_event(number, tid, inherit=True))
        if not seen:
            raise ProcessLookupError


def _threads(pid: int) -> set[int]:
    try:
        return {int(place.name) for place in Path("/proc", str(pid), "task").iterdir()}
    except (FileNotFoundError, ProcessLookupError):
        return set()
