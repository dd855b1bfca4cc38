"""Counted objects whose memory was freed while their count was above zero: they have ended, and not by a put."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tracer.model.distinct_values import is_in
from tracer.model.events import COUNTED_EVENT, ERROR_EVENT, IDENTITY, ErrorKind
from tracer.model.operations import Operation
from tracer.model.snapshot import Records, Snapshot

FREED_BLOCK = np.dtype(
    [
        ("address", "<u8"), ("time_ns", "<u8"), ("size", "<u8"), ("stack", "<u8"), ("release", "<u8"),
        ("pid", "<u4"), ("generation", "<u2"), ("group", "<u2"),
    ],
    align=True,
)
"""A block that was freed, or memory that was unmapped. `stack`, `release`: of its birth and of the free, 0: not kept.
The `release` of a realloc is the stack of what it made."""
_MOST_OBJECTS = 10_000


def without_moved(freed: Records, snapshot: Snapshot) -> Records:
    """Leave out the blocks that a realloc freed: it has made another one, by the same stack."""
    totals = snapshot.totals[snapshot.totals["made"] > 0]
    made = np.concatenate([totals["stack"], snapshot.allocations["stack"], freed["stack"]])
    left: Records = freed[~is_in(freed["release"], made)]
    return left


def with_freed_counters(snapshot: Snapshot, freed: Records) -> Snapshot:
    """Return the snapshot with those objects as errors that lie in a block which was freed after they were created.

    Where the place of the free was not kept, it may have been a realloc, which moves what a block holds: then nothing
    is said. What is alive there now was allocated since.
    """
    objects, freed = snapshot.objects, freed[freed["release"] != 0]
    found = [(row, block) for row in range(min(len(objects), _MOST_OBJECTS) if len(freed) else 0)
             if (block := _block_of(objects[row], freed)) is not None]  # fmt: skip
    if not found:
        return snapshot
    gone = np.array([row for row, _ in found])
    errors = [_error(objects[row], freed[block], snapshot.history) for row, block in found]
    return replace(
        snapshot,
        objects=np.delete(objects, gone),
        errors=np.concatenate([snapshot.errors, *errors]),
    )


def _block_of(one: np.void, freed: Records) -> int | None:
    """Return the row of the block that an object's counter was in when it was freed last, if it was."""
    inside = (one["address"] >= freed["address"]) & (one["address"] - freed["address"] < freed["size"])
    same = (freed["pid"] == one["pid"]) & (freed["generation"] == one["generation"])
    rows = np.flatnonzero(inside & same & (freed["time_ns"] > one["time_ns"]))
    return int(rows[np.argmin(freed["time_ns"][rows])]) if len(rows) else None


def _error(one: np.void, block: np.void, history: Records) -> Records:
    """An error of more than the creator's reference; of that alone, a remark: its owner may not have shared it."""
    event = np.zeros(1, COUNTED_EVENT)
    kind = ErrorKind.FREED_WHILE_COUNTED if one["count"] > 1 else ErrorKind.FREED_PAST_COUNTER
    event["operation"], event["error"] = Operation.ERROR, kind
    for name in IDENTITY:
        event[name] = one[name]
    event["time_ns"], event["stack"], event["birth"] = block["time_ns"], block["release"], one["stack"]
    event["broken_type"], event["tid"], event["site"] = one["type"], one["tid"], one["site"]
    event["count"] = min(int(one["count"]), 0x7FFFFFFF)
    mine = history["operation"] == Operation.GET
    for name in IDENTITY:
        mine &= history[name] == one[name]
    gets = history[mine]
    event["release"] = gets["stack"][np.argmax(gets["time_ns"])] if len(gets) else 0
    return event.view(ERROR_EVENT)
