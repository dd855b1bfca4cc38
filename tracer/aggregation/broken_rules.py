"""Errors of counting: a bounded sample of the events, and exact numbers."""

from __future__ import annotations

import numpy as np

from tracer.aggregation.grouping import Indices
from tracer.aggregation.tally import Tally, changes
from tracer.model.columns import KEYS, Column, columns_of, table
from tracer.model.snapshot import Records

ERROR_COUNT = table(
    ("kind", "u1", Column.KEY), ("type", "<u8", Column.TYPE), ("pid", "<u4", Column.KEY),
    ("generation", "<u2", Column.KEY), ("stack", "<u8", Column.STACK), ("birth", "<u8", Column.STACK),
    ("release", "<u8", Column.STACK), ("count", "<u8", Column.SUM),
)  # fmt: skip
"""How often one error happened: ErrorKind, and the stacks of the offender, the birth and the release."""
_KEYS = columns_of(ERROR_COUNT, *KEYS)
_MOST = 2**32 - 1


class BrokenRules:
    """ERROR_EVENTs; of those alike the first `samples` are kept and all are counted."""

    def __init__(self, samples: int = 4) -> None:
        self._samples = samples
        self._counts = Tally(ERROR_COUNT)
        self._events: Records | None = None

    def add(self, events: Records) -> None:
        """Add ERROR_EVENTs."""
        if len(events) == 0:
            return
        self._counts.add(_described(events))
        known = events if self._events is None else np.concatenate([self._events, events])
        known = known[np.argsort(known["time_ns"], kind="stable")]
        self._events = known[np.sort(self._sampled(known))]

    def counts(self) -> Records:
        """Return rows of dtype ERROR_COUNT, in order of their key."""
        return self._counts.rows()

    def events(self, dtype: np.dtype[np.void]) -> Records:
        """Return the sample in order of time; `represented` says how many errors each event stands for.

        The first of those alike stands for all that were not kept, so that the sum over `represented` is
        the number of errors (up to 2^32 - 1 of one kind).
        """
        if self._events is None:
            return np.zeros(0, dtype=dtype)
        events = self._events.copy()
        described = _described(events)
        order = np.lexsort([described[name] for name in reversed(_KEYS)])
        starts = np.flatnonzero(changes([described[name][order] for name in _KEYS]))
        kept = np.diff(np.append(starts, len(order)))
        events["represented"] = 1
        stand_for = self._counts.rows()["count"] - kept.astype(np.uint64) + np.uint64(1)
        events["represented"][order[starts]] = np.minimum(stand_for, _MOST)
        return events

    def _sampled(self, events: Records) -> Indices:
        """Return the indices of the first few of each kind."""
        described = _described(events)
        order = np.lexsort([described[name] for name in reversed(_KEYS)])
        begins = changes([described[name][order] for name in _KEYS])
        starts = np.flatnonzero(begins)
        rank = np.arange(len(order)) - starts[np.cumsum(begins) - 1]
        sampled: Indices = order[rank < self._samples]
        return sampled


def _described(events: Records) -> Records:
    rows = np.zeros(len(events), dtype=ERROR_COUNT)
    fields = {"kind": "error", "type": "broken_type"}
    for name in _KEYS:
        rows[name] = events[fields.get(name, name)]
    rows["count"] = 1
    return rows
