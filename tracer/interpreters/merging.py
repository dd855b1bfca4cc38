"""Frames of interpreters put between the frames of the C stack, where their interpreters are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


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


def merged(native: Sequence[int], places: Sequence[int], runs: Sequence[Run]) -> tuple[tuple[int, ...], int]:
    """Return the frame keys of both, leaf first, and the number of runs whose place was not found.

    Those beyond the end of a native stack that was cut are not counted.

    `places`: the stack pointer of each native frame. A Python run replaces the frame of its evaluation loop; a Lua
    run stands before the function that entered Lua, behind all that this called.
    """
    frames, reach, end = list(native), max(places, default=0), _descent(places)
    found = [(index, run) for run in runs if (index := _index(places, end, run)) is not None]
    missed = sum(bool(run.frames) and run.place <= reach for run in runs) - sum(bool(run.frames) for _, run in found)
    for index, run in sorted(found, key=lambda pair: pair[0], reverse=True):
        if run.frames:
            frames[index : index + run.replaces_loop] = run.frames
    return tuple(frames), missed


def _descent(places: Sequence[int]) -> int:
    """Return the index of the first stack pointer that is below the one before."""
    return next((at for at, (before, here) in enumerate(pairwise(places), 1) if here < before), len(places))


def _index(places: Sequence[int], end: int, run: Run) -> int | None:
    """Return the index of a run's native frame, of those before `end`."""
    after = bisect_right(places, run.place, 0, end)
    if run.replaces_loop:
        return after - 1 if 0 < after < end else None
    return after - 2 if after >= 2 and places[after - 1] == run.place else None
