"""A snapshot's types under other numbers: what is one type in several address spaces becomes one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

import numpy as np

from tracer.model.operations import Operation
from tracer.model.snapshot import Snapshot
from tracer.model.statistics import BalancedStatistics, Records

_SUMS = ("count", "exact", "sum_ns", "made", "freed")
_MINIMA, _MAXIMA = ("min_ns",), ("max_ns",)
_NO_KEYS = (*_SUMS, *_MINIMA, *_MAXIMA, "site")
_COURSES = "courses"


def merge_types(snapshot: Snapshot, types: Mapping[int, int]) -> Snapshot:
    """Return the snapshot with each type that is a key of `types` under the number that stands there.

    Rows of statistics that are then about the same become one: their keys stay distinct and in order.
    """
    if not types:
        return snapshot
    numbers = _Numbers(types)
    tables = [(field.name, getattr(snapshot.balanced, field.name)) for field in fields(BalancedStatistics)]
    balanced = {name: numbers.column(rows) for name, rows in tables}
    merged = {name: rows if name == _COURSES else _merged(rows) for name, rows in balanced.items()}
    return replace(
        snapshot,
        type_totals=tuple(replace(total, type=types.get(total.type, total.type)) for total in snapshot.type_totals),
        objects=numbers.column(snapshot.objects),
        inherited_objects=numbers.column(snapshot.inherited_objects),
        checkpoint_totals=_merged(numbers.column(snapshot.checkpoint_totals)),
        balanced=BalancedStatistics(**merged),
        history=numbers.events(snapshot.history),
        errors=numbers.events(snapshot.errors),
        error_history=numbers.events(snapshot.error_history),
    )


class _Numbers:
    def __init__(self, types: Mapping[int, int]) -> None:
        self._old = np.array(sorted(types), np.uint64)
        self._new = np.array([types[old] for old in sorted(types)], np.uint64)

    def column(self, rows: Records, name: str = "type", where: Records | None = None) -> Records:
        """Return a copy with other numbers in one column, of all rows or of those that `where` says."""
        rows = rows.copy()
        at = np.minimum(np.searchsorted(self._old, rows[name]), len(self._old) - 1)
        hits = self._old[at] == rows[name]
        if where is not None:
            hits &= where
        rows[name][hits] = self._new[at[hits]]
        return rows

    def events(self, events: Records) -> Records:
        """A create has its type in `value`, an error in `extra`."""
        events = self.column(events, "value", events["operation"] == Operation.CREATE)
        return self.column(events, "extra", events["operation"] == Operation.ERROR)


def _merged(rows: Records) -> Records:
    names = rows.dtype.names or ()
    keys = [name for name in names if name not in _NO_KEYS]
    distinct, first, label = np.unique(rows[keys], return_index=True, return_inverse=True)
    if len(distinct) == 0:
        return rows
    found = rows[first]
    for name in names:
        if name in _SUMS:
            found[name] = 0
            np.add.at(found[name], label, rows[name])
        elif name in _MINIMA:
            np.minimum.at(found[name], label, rows[name])
        elif name in _MAXIMA:
            np.maximum.at(found[name], label, rows[name])
    return found
