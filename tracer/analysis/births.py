"""Births of what is outstanding, entry by entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import starmap

import numpy as np

from tracer.analysis.groups import Column, Indices
from tracer.late_dataclasses import dataclass
from tracer.model.trends import Durations

TENTHS = 10


@dataclass(frozen=True, slots=True)
class Births:
    """Of one entry; times in ns since the trace began."""

    count: int
    first_ns: int
    median_ns: int
    last_ns: int
    tenths: tuple[int, ...]
    """How many were made in each tenth of the time from the first of them to the end."""
    late_bytes: int
    """Of all but those in the first tenth."""
    start_ns: int
    """When the trace of the process began, and ended."""
    end_ns: int

    @property
    def ages(self) -> Durations:
        end = self.end_ns
        return Durations(
            self.count, max(0, end - self.last_ns), max(0, end - self.median_ns), max(0, end - self.first_ns)
        )


def births(times: Column, sizes: Column, bounds: Indices, spans: Sequence[tuple[int, int]]) -> Iterator[Births]:
    """Return the births of entry after entry.

    Rows bounds[e] to bounds[e + 1] of `times` and `sizes` (bytes) are those of entry e, the oldest first; no entry is
    empty. `spans`: per entry, when the trace of its process began and ended.
    """
    entries = len(spans)
    counts = np.diff(bounds)
    entry = np.repeat(np.arange(entries), counts)
    ordered, starts = times.astype(np.int64), bounds[:-1]
    first, last = ordered[starts], ordered[bounds[1:] - 1]
    median = ordered[starts + (counts - 1) // 2]
    ends = np.maximum(np.array([end for _, end in spans], dtype=np.int64), last)
    tenth = (ordered - first[entry]) * TENTHS // np.maximum(ends - first, 1)[entry]
    tenth = np.clip(tenth, 0, TENTHS - 1)  # times of a damaged recording may be beyond all numbers
    made = np.bincount(entry * TENTHS + tenth, minlength=entries * TENTHS).reshape(entries, TENTHS)
    late = np.add.reduceat(np.where(tenth > 0, sizes.astype(np.uint64), 0), starts)
    rows = zip(
        counts.tolist(), first.tolist(), median.tolist(), last.tolist(), map(tuple, made.tolist()), late.tolist(),
        [start for start, _ in spans], ends.tolist(), strict=True,
    )  # fmt: skip
    return starmap(Births, rows)
