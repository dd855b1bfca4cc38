"""Totals per type and address space."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tracer.aggregation.fates import ABSENT, Fate, Fates
from tracer.aggregation.grouping import Grouping
from tracer.aggregation.tally import Tally
from tracer.model.columns import Column, table
from tracer.model.events import CHANGE_EVENT, CREATE_EVENT
from tracer.model.operations import Operation
from tracer.model.snapshot import Records, TypeTotals

_COUNTS = ("created", "gets", "puts", "destroyed", "unknown_gets", "unknown_puts")
TYPE_COUNT = table(
    ("type", "<u8", Column.TYPE), ("pid", "<u4", Column.KEY), ("generation", "<u2", Column.KEY),
    *((name, "<u8", Column.SUM) for name in _COUNTS),
)  # fmt: skip


def type_tally() -> Tally:
    return Tally(TYPE_COUNT)


def of_objects(events: Records, grouping: Grouping, fates: Fates) -> Records:
    """Return a TYPE_COUNT per object: its creates, gets, puts and ends; an orphan's type is 0."""
    rows = np.zeros(grouping.objects, dtype=TYPE_COUNT)
    first = grouping.order[grouping.starts]
    rows["pid"], rows["generation"] = events["pid"][first], events["generation"][first]
    known = fates.create != ABSENT
    rows["type"][known] = events.view(CREATE_EVENT)["type"][grouping.order[fates.create[known]]]
    operation = events["operation"][grouping.order]
    rows["gets"] = np.bincount(grouping.owner[operation == Operation.GET], minlength=grouping.objects)
    rows["puts"] = np.bincount(grouping.owner[operation == Operation.PUT], minlength=grouping.objects)
    rows["created"] = known & (fates.fate != Fate.VOID)
    rows["destroyed"] = (fates.last != ABSENT) & (fates.fate != Fate.VOID) | (fates.fate == Fate.SUPERSEDED)
    return rows


def of_unknown(events: Records) -> Records:
    """Return a TYPE_COUNT per get and put of an object that was not seen created; its type, if known."""
    changes = events.view(CHANGE_EVENT)
    rows = np.zeros(len(events), dtype=TYPE_COUNT)
    rows["type"], rows["pid"], rows["generation"] = changes["type"], events["pid"], events["generation"]
    rows["unknown_gets"] = events["operation"] == Operation.GET
    rows["unknown_puts"] = events["operation"] == Operation.PUT
    return rows


def of_pairs(creates: Records, pairs: npt.NDArray[np.integer[Any]]) -> Records:
    """Return a TYPE_COUNT per object whose `creates` are given, with `pairs[i]` gets and puts each."""
    rows = np.zeros(len(creates), dtype=TYPE_COUNT)
    creates = creates.view(CREATE_EVENT)
    rows["type"], rows["pid"], rows["generation"] = creates["type"], creates["pid"], creates["generation"]
    rows["gets"] = rows["puts"] = pairs
    return rows


def as_totals(rows: Records) -> tuple[TypeTotals, ...]:
    """Return TYPE_COUNT rows as TypeTotals."""
    return tuple(TypeTotals(*row) for row in rows.tolist())
