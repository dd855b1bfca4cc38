"""Rows under other numbers: what had several numbers and is one thing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tracer.model.columns import KEYS, Column, columns_of
from tracer.model.statistics import Records


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

    def columns(self, rows: Records, meaning: Column) -> Records:
        """Return a copy with other numbers in the columns of that meaning."""
        for name in columns_of(rows.dtype, meaning):
            rows = self.column(rows, name)
        return rows


def merged(rows: Records) -> Records:
    """Make one row of those that are now about the same: keys stay distinct and in order."""
    keys = list(columns_of(rows.dtype, *KEYS))
    distinct, first, label = np.unique(rows[keys], return_index=True, return_inverse=True)
    found = rows[first]
    if len(distinct) == len(rows):
        return found
    for name in columns_of(rows.dtype, Column.SUM):
        found[name] = 0
        np.add.at(found[name], label, rows[name])
    for name in columns_of(rows.dtype, Column.MINIMUM):
        np.minimum.at(found[name], label, rows[name])
    for name in columns_of(rows.dtype, Column.MAXIMUM):
        np.maximum.at(found[name], label, rows[name])
    return found
