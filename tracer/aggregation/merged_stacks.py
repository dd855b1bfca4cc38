"""A snapshot's stacks under other numbers: what was walked to the same frames is one stack.

The kernel side numbers a stack by what it saw of it. Stacks that it had to cut, and that user space walked to their
end, have a number for each copy that was made.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from tracer.aggregation.renumbering import Numbers, merged
from tracer.model.columns import Column
from tracer.model.snapshot import Snapshot, Stack
from tracer.model.statistics import BalancedStatistics, Records

_COURSES = "courses"


def merge_stacks(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with one number for all stacks of the same frames and status.

    Rows of statistics that are then about the same become one: their keys stay distinct and in order.
    """
    first: dict[Stack, int] = {}
    others = {id_: kept for id_, stack in snapshot.stacks.items() if (kept := first.setdefault(stack, id_)) != id_}
    if not others:
        return snapshot
    numbers = Numbers(others)
    tables = [(field.name, getattr(snapshot.balanced, field.name)) for field in fields(BalancedStatistics)]
    balanced = {name: numbers.columns(rows, Column.STACK) for name, rows in tables}
    joined = {name: rows if name == _COURSES else merged(rows) for name, rows in balanced.items()}
    return replace(
        snapshot,
        stacks={id_: stack for id_, stack in snapshot.stacks.items() if id_ not in others},
        allocations=numbers.columns(snapshot.allocations, Column.STACK),
        objects=numbers.columns(snapshot.objects, Column.STACK),
        mapped=numbers.columns(snapshot.mapped, Column.STACK),
        inherited=numbers.columns(snapshot.inherited, Column.STACK),
        inherited_objects=numbers.columns(snapshot.inherited_objects, Column.STACK),
        totals=_merged_totals(numbers.columns(snapshot.totals, Column.STACK)),
        checkpoint_totals=merged(numbers.columns(snapshot.checkpoint_totals, Column.STACK)),
        life_bins=merged(numbers.columns(snapshot.life_bins, Column.STACK)),
        free_sites=merged(numbers.columns(snapshot.free_sites, Column.STACK)),
        balanced=BalancedStatistics(**joined),
        condensed=merged(numbers.columns(snapshot.condensed, Column.STACK)),
        freed_holders=merged(numbers.columns(snapshot.freed_holders, Column.STACK)),
        history=numbers.columns(snapshot.history, Column.STACK),
        errors=numbers.columns(snapshot.errors, Column.STACK),
        error_history=numbers.columns(snapshot.error_history, Column.STACK),
    )


def _merged_totals(totals: Records) -> Records:
    """Add up; the most that was alive at once is then no less than it was."""
    totals["risen"] = np.where(totals["risen"], totals["risen"], totals["made"])
    unknown = totals["life_min_ns"] == 0
    totals["life_min_ns"][unknown] = np.iinfo(np.uint64).max
    found = merged(totals)
    found["life_min_ns"][found["life_min_ns"] == np.iinfo(np.uint64).max] = 0
    return found

