"""Gets and puts of the live objects, found in the event history."""

from __future__ import annotations

import numpy as np

from tracer.analysis.groups import Column, Indices, group_rows
from tracer.late_dataclasses import dataclass
from tracer.model.events import IDENTITY
from tracer.model.operations import Operation
from tracer.model.snapshot import Records


@dataclass(frozen=True)
class Calls:
    """Gets and puts summed by object, operation and stack; columns of one length."""

    object: Indices
    """Row of the object in the snapshot's `objects`."""
    operation: Column
    stack: Column
    count: Indices


def owners(history: Records, objects: Records) -> Indices:
    """Return for each event the row of its object in `objects`, or -1: shape (len(history),)."""
    if len(history) == 0 or len(objects) == 0:
        return np.full(len(history), -1, dtype=np.int64)
    columns = (np.concatenate([objects[name], history[name]]) for name in IDENTITY)
    label = group_rows(*columns).label
    row_of = np.full(int(label.max()) + 1, -1, dtype=np.int64)
    row_of[label[: len(objects)]] = np.arange(len(objects))
    return row_of[label[len(objects) :]]


def calls(history: Records, owner: Indices, condensed: Records, pair_owner: Indices) -> Calls:
    """Sum the gets and puts of owned events and pairs. `owner`, `pair_owner`: as from `owners`, of each."""
    operation = history["operation"]
    rows = np.flatnonzero((owner >= 0) & ((operation == Operation.GET) | (operation == Operation.PUT)))
    pairs = np.flatnonzero(pair_owner >= 0)
    object_ = np.concatenate([owner[rows], pair_owner[pairs], pair_owner[pairs]])
    kinds = [np.full(len(pairs), kind, dtype=np.uint8) for kind in (Operation.GET, Operation.PUT)]
    called = np.concatenate([operation[rows], *kinds])
    kept = condensed[pairs]
    stack = np.concatenate([history["stack"][rows], kept["get_stack"], kept["put_stack"]])
    count = np.concatenate([np.ones(len(rows), dtype=np.int64), *[kept["count"].astype(np.int64)] * 2])
    groups = group_rows(object_, called, stack)
    total = np.zeros(len(groups), dtype=np.int64)
    np.add.at(total, groups.label, count)
    return Calls(object_[groups.first], called[groups.first], stack[groups.first], total)
