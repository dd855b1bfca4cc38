"""Rows of equal keys, found by sorting: no loop over rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[Any]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Groups:
    label: Indices
    """Group of each row, from 0."""
    first: Indices
    """The first row of each group."""

    def __len__(self) -> int:
        return len(self.first)


def group_rows(*columns: Column) -> Groups:
    """Group the rows whose values agree in all of `columns`: 1-d integer arrays of one length.

    Groups are numbered in the order of their columns' values, so that the result does not depend on the rows' order.
    """
    rows = len(columns[0])
    label = np.zeros(rows, dtype=np.int64)
    if rows == 0:
        return Groups(label, np.zeros(0, dtype=np.int64))
    groups = 1
    for column in columns:
        values, inverse = np.unique(np.ascontiguousarray(column), return_inverse=True)
        if len(values) == 1:
            continue
        label = label * len(values) + inverse
        groups *= len(values)
        if groups > rows:  # dense again, which also keeps the product below 2**63
            values, label = np.unique(label, return_inverse=True)
            groups = len(values)
    values, first, label = np.unique(label, return_index=True, return_inverse=True)
    return Groups(label.astype(np.int64, copy=False), first.astype(np.int64, copy=False))


def sorted_runs(label: Indices, groups: int) -> tuple[Indices, Indices]:
    """Return (order, bounds): `order[bounds[g]:bounds[g + 1]]` are the rows of group g, in their own order."""
    order = np.argsort(label, kind="stable")
    bounds = np.zeros(groups + 1, dtype=np.int64)
    np.cumsum(np.bincount(label, minlength=groups), out=bounds[1:])
    return order, bounds


def oldest(rows: Indices, times: Column, addresses: Column, most: int) -> Indices:
    """Return at most `most` of `rows`, those of the smallest time, ties by address. Linear in the rows."""
    if len(rows) <= 1 <= most:
        return rows
    if len(rows) > most > 0:
        limit = np.partition(times[rows], most - 1)[most - 1]
        rows = rows[times[rows] <= limit]
    order = np.lexsort((addresses[rows], times[rows]))
    return rows[order][:most]
