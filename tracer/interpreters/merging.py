"""Frames of interpreters put between the frames of the C stack, where their interpreters are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import itemgetter

from tracer.late_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """Frames that one call of an interpreter runs, leaf first."""

    frames: tuple[int, ...]
    """Frame keys."""
    place: int
    """Bytes from the start of the C stack. Python: to something in the frame of the evaluation loop. Lua: to the
    stack pointer of the caller of the function that entered Lua."""
    replaces_loop: bool
    """The frame of the evaluation loop, as Python's do."""


def merged(native: Sequence[int], places: Sequence[int], runs: Iterable[Run]) -> tuple[tuple[int, ...], int]:
    """Return the frame keys of both, leaf first, and the number of runs whose place was not found.

    Those beyond the end of a native stack that was cut are not counted.

    `places`: the stack pointer of each native frame. A Python run replaces the frame of its evaluation loop; a Lua
    run stands before the function that entered Lua, behind all that this called.
    """
    frames, reach, end = list(native), max(places, default=0), _descent(places)
    found, missed = [], 0
    for run in runs:
        if run.frames:
            index = _index(places, end, run)
            if index is not None:
                found.append((index, run))
            elif run.place <= reach:
                missed += 1
    found.sort(key=itemgetter(0), reverse=True)
    for index, run in found:
        frames[index : index + run.replaces_loop] = run.frames
    return tuple(frames), missed


def _descent(places: Sequence[int]) -> int:
    """Return the index of the first stack pointer that is below the one before."""
    if sorted(places) == list(places):  # nearly always, and sooner told
        return len(places)
    return next(at for at, (before, here) in enumerate(pairwise(places), 1) if here < before)


def _index(places: Sequence[int], end: int, run: Run) -> int | None:
    """Return the index of a run's native frame, of those before `end`."""
    after = bisect_right(places, run.place, 0, end)
    if run.replaces_loop:
        return after - 1 if 0 < after < end else None
    return after - 2 if after >= 2 and places[after - 1] == run.place else None
