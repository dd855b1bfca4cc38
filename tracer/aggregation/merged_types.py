"""A snapshot's types under other numbers: what is one type in several address spaces becomes one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

from tracer.aggregation.renumbering import Numbers, merged
from tracer.model.columns import Column
from tracer.model.events import CREATE_EVENT
from tracer.model.operations import Operation
from tracer.model.snapshot import Snapshot
from tracer.model.statistics import BalancedStatistics, Records

_COURSES = "courses"


def merge_types(snapshot: Snapshot, types: Mapping[int, int]) -> Snapshot:
    """Return the snapshot with each type that is a key of `types` under the number that stands there.

    Rows of statistics that are then about the same become one: their keys stay distinct and in order.
    """
    if not types:
        return snapshot
    numbers = Numbers(types)
    tables = [(field.name, getattr(snapshot.balanced, field.name)) for field in fields(BalancedStatistics)]
    balanced = {name: numbers.columns(rows, Column.TYPE) for name, rows in tables}
    joined = {name: rows if name == _COURSES else merged(rows) for name, rows in balanced.items()}
    return replace(
        snapshot,
        type_totals=tuple(replace(total, type=types.get(total.type, total.type)) for total in snapshot.type_totals),
        objects=numbers.columns(snapshot.objects, Column.TYPE),
        inherited_objects=numbers.columns(snapshot.inherited_objects, Column.TYPE),
        checkpoint_totals=merged(numbers.columns(snapshot.checkpoint_totals, Column.TYPE)),
        freed_holders=merged(numbers.columns(snapshot.freed_holders, Column.TYPE)),
        balanced=BalancedStatistics(**joined),
        history=_events(numbers, snapshot.history),
        errors=numbers.columns(snapshot.errors, Column.TYPE),
        error_history=_events(numbers, snapshot.error_history),
    )


def _events(numbers: Numbers, events: Records) -> Records:
    """Of the events of objects, a create has its type."""
    creates = events["operation"] == Operation.CREATE
    return numbers.column(events.view(CREATE_EVENT), "type", creates).view(events.dtype)
