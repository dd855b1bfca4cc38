"""Rows of equal keys, found without a loop over rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tracer.late_dataclasses import dataclass
from tracer.model.distinct_values import distinct

Column = npt.NDArray[Any]
Indices = npt.NDArray[np.int64]
_FEW = 1 << 10
_MOST_KEYS, _MOST_SPAN = 1 << 62, 1 << 48
"""Products of keys stay below 2**63. User space's addresses have a span of less than 48 bits, as a rule."""


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
    most = 4 * rows + _FEW
    groups = 1
    for column in columns:
        numbers, count = _numbers(column, most)
        if count == 1:
            continue
        if groups * count > _MOST_KEYS:
            values, label = np.unique(label, return_inverse=True)
            groups = len(values)
        label = label * count + numbers
        groups *= count
    if groups > most:
        _, first, label = np.unique(label, return_index=True, return_inverse=True)
        return Groups(label.astype(np.int64, copy=False), first.astype(np.int64, copy=False))
    first = np.full(groups, -1)
    first[label[::-1]] = np.arange(rows)[::-1]  # of several that are written to one place the last stays
    present = np.flatnonzero(first >= 0)
    if len(present) == groups:
        return Groups(label, first)
    number = np.empty(groups, np.int64)
    number[present] = np.arange(len(present))
    return Groups(number[label], first[present])


def _numbers(column: Column, most: int) -> tuple[Indices, int]:
    """Return numbers in the order of a column's values, and a number that they are below: sorting costs most, and few
    columns need it."""
    column = _integers(column)
    low = column.min()
    span = int(column.max()) - int(low) + 1
    if span <= most:
        return (column - low).astype(np.int64), span
    values, numbers = np.unique(np.ascontiguousarray(column), return_inverse=True)
    return numbers, len(values)


def _integers(column: Column) -> Column:
    """Return a column of which differences can be taken."""
    return column.astype(np.int64) if column.dtype.kind in "bi" else column


def matching_rows(known: Sequence[Column], wanted: Sequence[Column]) -> Indices:
    """Return for each wanted row a known one that agrees in all columns, -1: none. Columns as of group_rows, of the
    same types."""
    keys, others = (np.zeros(len(columns[0]), np.int64) for columns in (known, wanted))
    if not len(keys) or not len(others):
        return np.full(len(others), -1)
    if all(map(np.array_equal, known, wanted)):
        return np.arange(len(keys))
    is_in, size = np.ones(len(others), np.bool_), 1
    for column, other in zip(known, wanted, strict=True):
        numbers, other_numbers, count = _numbers_of_both(column, other, _MOST_SPAN)
        if size * count > _MOST_KEYS:
            keys, others, size = _numbers_of_both(keys, others, 0)
            is_in &= others >= 0
        if size * count > _MOST_KEYS:
            numbers, other_numbers, count = _numbers_of_both(numbers, other_numbers, 0)
        is_in &= other_numbers >= 0
        keys, others, size = keys * count + numbers, others * count + other_numbers, size * count
    order, turn = np.argsort(keys), np.argsort(others)  # many are looked up faster in order
    ordered, wanted_keys = keys[order], others[turn]
    place = np.maximum(np.searchsorted(ordered, wanted_keys, side="right") - 1, 0)
    found = np.empty(len(others), np.int64)
    found[turn] = np.where(is_in[turn] & (ordered[place] == wanted_keys), order[place], -1)
    return found


def _numbers_of_both(column: Column, other: Column, most: int) -> tuple[Indices, Indices, int]:
    """Return numbers of the values of a column, the same of another's, -1 for what is not in the first, and a number
    that they are below: the span of the values if it is not above `most`, else how many there are."""
    column, other = _integers(column), _integers(other)
    low, high = column.min(), column.max()
    span = int(high) - int(low) + 1
    if span <= most:
        is_in = (other >= low) & (other <= high)
        numbers = np.where(is_in, other, low) - low
        return (column - low).astype(np.int64), np.where(is_in, numbers.astype(np.int64), -1), span
    values = distinct(column)
    place = np.minimum(np.searchsorted(values, other), len(values) - 1)
    return np.searchsorted(values, column), np.where(values[place] == other, place, -1), len(values)


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
