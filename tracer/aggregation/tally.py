"""Rows summed by key: statistics that grow with the distinct keys, not with what is counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tracer.aggregation.hashing import hashed
from tracer.model.columns import KEYS, Column, columns_of, meanings_of
from tracer.model.snapshot import Records

Indices = npt.NDArray[np.int64]

_SLACK = 1 << 16
_MERGES = {Column.SUM: np.add, Column.MINIMUM: np.minimum, Column.MAXIMUM: np.maximum}


def changes(columns: Sequence[npt.NDArray[np.generic]]) -> npt.NDArray[np.bool_]:
    """Return where a row differs from the one before it in any of `columns`; the first always does."""
    differs = np.ones(len(columns[0]), dtype=bool)
    if len(differs):
        differs[1:] = False
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return differs


class Tally:
    """Structured rows merged by their keys, as their columns were declared.

    Added rows wait until they are as many as the merged ones, so that the cost of a row does not depend on how large
    the table has grown.
    """

    def __init__(self, dtype: np.dtype[np.void]) -> None:
        self._keys = columns_of(dtype, *KEYS)
        self._merge = {name: _MERGES[meaning] for name, meaning in meanings_of(dtype).items() if meaning in _MERGES}
        self._merged: Records = np.zeros(0, dtype=dtype)
        self._ordered = True
        self._waiting: list[Records] = []
        self._waiting_rows = 0

    def add(self, rows: Records) -> None:
        """Add rows of the tally's dtype; equal keys within them are merged at once."""
        if len(rows) == 0:
            return
        rows = self._reduce(rows, self._gathered(rows))
        self._waiting.append(rows)
        self._waiting_rows += len(rows)
        if self._waiting_rows > _SLACK + len(self._merged):
            self._merge_waiting()

    def rows(self) -> Records:
        """Return one row per distinct key, in order of the keys."""
        self._merge_waiting()
        if not self._ordered:
            order = np.lexsort([self._merged[name] for name in reversed(self._keys)])
            self._merged, self._ordered = self._reduce(self._merged, order), True
        return self._merged.copy()

    def unordered(self) -> Records:
        """Return the same in no order, not to be changed; in theory one key may stand there more than once."""
        self._merge_waiting()
        return self._merged

    def drop(self, gone: npt.NDArray[np.bool_]) -> None:
        """Forget rows; `gone` is per row of `unordered`."""
        self._merged = self._merged.take(np.flatnonzero(~gone))

    def _merge_waiting(self) -> None:
        if self._waiting:
            rows = np.concatenate([self._merged, *self._waiting])
            self._waiting.clear()
            self._waiting_rows = 0
            self._merged = rows[:0]  # before another copy is made
            self._merged, self._ordered = self._reduce(rows, self._gathered(rows)), False

    def _gathered(self, rows: Records) -> Indices:
        """Return an order in which equal keys stand side by side; only where two keys' hashes are equal they may not.

        Sorting one number is several times faster than sorting all keys; `rows` merges what this missed.
        """
        return np.argsort(hashed((rows[name] for name in self._keys), len(rows)))

    def _reduce(self, rows: Records, order: Indices) -> Records:
        """Merge rows with equal keys that stand side by side in `order`."""
        rows = rows.take(order)
        starts = np.flatnonzero(changes([rows[name] for name in self._keys]))
        merged = rows.take(starts)
        for name, merge in self._merge.items():
            merged[name] = merge.reduceat(rows[name], starts)
        return merged
