"""Course of the heap: what the living address spaces had of blocks at moments of a trace."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import numpy as np

from tracer.model.addresses import Space, space_number, space_numbers
from tracer.model.distinct_values import is_in
from tracer.model.snapshot import Records
from tracer.model.statistics import HEAP_POINT

_INTERVAL_NS = 10_000_000
_SHARE = 100
"""A look may take a hundredth of the time: of a thousand threads it copies 64 MB."""
_MOST_POINTS = 512
Totals = tuple[Records, Records]
"""(KEY, SPACE_TOTALS) of every address space."""


class HeapCourse:
    """Keeps some hundred points. Of two that are thinned out the higher one stays, so that the peak does."""

    def __init__(self, read_totals: Callable[[], Totals]) -> None:
        self._read_totals = read_totals
        self._points: list[tuple[int, int, int, int, int]] = []
        self._interval_ns, self._next_ns = _INTERVAL_NS, 0

    def look(self, now_ns: int, spaces: Callable[[], Iterable[Space]]) -> None:
        """Take a point, if it is time for one. `now_ns`: since the trace began."""
        if now_ns < self._next_ns:
            return
        began = time.monotonic_ns()
        self._take(now_ns, set(spaces()))
        cost = time.monotonic_ns() - began
        self._next_ns = now_ns + max(self._interval_ns, _SHARE * cost)

    def end(self, now_ns: int, spaces_since: Callable[[int], Iterable[Space]]) -> None:
        """Take the last point. `spaces_since`: gives those that live, and those that have ended since a time."""
        self._take(now_ns, set(spaces_since(self._points[-1][0] if self._points else 0)))

    def _take(self, now_ns: int, spaces: set[Space]) -> None:
        keys, values = self._read_totals()
        held = values[is_in(space_numbers(keys), np.array([space_number(space) for space in spaces], np.uint64))]
        live, live_bytes = (
            max(0, int(held[made].sum()) - int(held[freed].sum()))
            for made, freed in (("made", "freed"), ("made_bytes", "freed_bytes"))
        )
        self._points.append((now_ns, live, live_bytes, int(values["made"].sum()), int(values["made_bytes"].sum())))
        if len(self._points) > _MOST_POINTS:
            pairs = zip(self._points[::2], self._points[1::2], strict=False)
            self._points = [max(pair, key=lambda point: point[2]) for pair in pairs] + self._points[-1:]
            self._interval_ns *= 2

    def points(self) -> Records:
        """Return HEAP_POINTs in order of time."""
        return np.array(self._points, HEAP_POINT)
