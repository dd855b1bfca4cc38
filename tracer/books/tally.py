"""Rows summed by key: statistics that grow with the distinct keys, not with what is counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tracer.model.snapshot import Records

_SLACK = 1 << 16


def changes(columns: Sequence[npt.NDArray[np.generic]]) -> npt.NDArray[np.bool_]:
    """Return where a row differs from the one before it in any of `columns`; the first always does."""
    differs = np.ones(len(columns[0]), dtype=bool)
    if len(differs):
        differs[1:] = False
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return differs


class Tally:
    """Structured rows merged by the fields `keys`.

    Of rows with equal keys the other fields are added, those named in `least` and `most` give their
    minimum and maximum. Added rows wait until they are as many as the merged ones, so that the cost
    of a row does not depend on how large the table has grown.
    """

    def __init__(
        self, dtype: np.dtype[np.void], keys: Sequence[str], least: Sequence[str] = (), most: Sequence[str] = ()
    ) -> None:
        self._keys = tuple(keys)
        names = [name for name in dtype.names or () if name not in self._keys]
        self._merge = {name: np.minimum if name in least else np.maximum if name in most else np.add for name in names}
        self._merged: Records = np.zeros(0, dtype=dtype)
        self._waiting: list[Records] = []
        self._waiting_rows = 0

    def add(self, rows: Records) -> None:
        """Add rows of the tally's dtype; equal keys within them are merged at once."""
        if len(rows) == 0:
            return
        rows = self._reduce(rows)
        self._waiting.append(rows)
        self._waiting_rows += len(rows)
        if self._waiting_rows > _SLACK + len(self._merged):
            self.rows()

    def rows(self) -> Records:
        """Return one row per distinct key, in order of the keys."""
        if self._waiting:
            self._merged = self._reduce(np.concatenate([self._merged, *self._waiting]))
            self._waiting.clear()
            self._waiting_rows = 0
        return self._merged.copy()

    def _reduce(self, rows: Records) -> Records:
        order = np.lexsort([rows[name] for name in reversed(self._keys)])
        starts = np.flatnonzero(changes([rows[name][order] for name in self._keys]))
        merged = np.zeros(len(starts), dtype=rows.dtype)
        for name in self._keys:
            merged[name] = rows[name][order[starts]]
        for name, merge in self._merge.items():
            merged[name] = merge.reduceat(rows[name][order], starts)
        return merged
