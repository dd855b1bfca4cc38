"""Rows under other numbers: what had several numbers and is one thing."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt

from tracer.model.statistics import Records

SUMS = (
    "count", "exact", "sum_ns", "made", "made_bytes", "freed", "freed_bytes", "life_ns", "peak", "level", "risen",
)  # fmt: skip
MINIMA, MAXIMA = ("min_ns", "life_min_ns"), ("max_ns", "life_max_ns")
_ANY = ("site", "reserved")
_NO_KEYS = (*SUMS, *MINIMA, *MAXIMA, *_ANY)


class Numbers:
    """Old numbers to new ones."""

    def __init__(self, numbers: Mapping[int, int]) -> None:
        self._old = np.array(sorted(numbers), np.uint64)
        self._new = np.array([numbers[old] for old in sorted(numbers)], np.uint64)

    def column(self, rows: Records, name: str, where: npt.NDArray[np.bool_] | None = None) -> Records:
        """Return a copy with other numbers in one column, of all rows or of those that `where` says."""
        rows = rows.copy()
        at = np.minimum(np.searchsorted(self._old, rows[name]), len(self._old) - 1)
        hits = self._old[at] == rows[name]
        if where is not None:
            hits &= where
        rows[name][hits] = self._new[at[hits]]
        return rows

    def columns(self, rows: Records, names: Collection[str]) -> Records:
        """Return a copy with other numbers in those of the columns that there are."""
        for name in rows.dtype.names or ():
            if name in names:
                rows = self.column(rows, name)
        return rows


def merged(rows: Records) -> Records:
    """Make one row of those that are now about the same: keys stay distinct and in order."""
    names = rows.dtype.names or ()
    keys = [name for name in names if name not in _NO_KEYS]
    distinct, first, label = np.unique(rows[keys], return_index=True, return_inverse=True)
    if len(distinct) == len(rows):
        return rows[first]
    found = rows[first]
    for name in names:
        if name in SUMS:
            found[name] = 0
            np.add.at(found[name], label, rows[name])
        elif name in MINIMA:
            np.minimum.at(found[name], label, rows[name])
        elif name in MAXIMA:
            np.maximum.at(found[name], label, rows[name])
    return found
