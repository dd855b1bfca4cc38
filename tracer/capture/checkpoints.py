"""Checkpoints: what every stack had made and freed at the moments that the user marked."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tracer.aggregation.history import History
from tracer.capture.ended_books import EndedBooks
from tracer.kernel.maps import Maps
from tracer.model import records
from tracer.model.events import CREATE_EVENT
from tracer.model.operations import Operation
from tracer.model.periods import Checkpoint
from tracer.model.snapshot import Records
from tracer.model.statistics import CHECKPOINT_TOTALS

_STACK_KEY = np.dtype([("stack", "<u8")])


class Checkpoints:
    def __init__(self) -> None:
        self.asked = 0
        self.taken: list[Checkpoint] = []
        self._totals: list[Records] = []

    def take(
        self, time_ns: int, maps: Maps, ended: EndedBooks, history: History, between: Callable[[], None]
    ) -> None:
        """Read the totals of all stacks; `between` is called now and then meanwhile."""
        self.taken.append(Checkpoint(len(self.taken) + 1, time_ns))
        for rows in (_blocks(maps, between), _objects(ended, history, between)):
            rows["checkpoint"] = len(self.taken)
            self._totals.append(rows)

    def totals(self) -> Records:
        """Return the rows of all checkpoints so far."""
        return np.concatenate([np.zeros(0, CHECKPOINT_TOTALS), *self._totals])


def _blocks(maps: Maps, between: Callable[[], None]) -> Records:
    keys, values = maps.read("STACKS", _STACK_KEY, records.STACK_TOTALS, 16384, between)
    made = np.flatnonzero(values["made"])
    rows = np.zeros(len(made), CHECKPOINT_TOTALS)
    rows["stack"] = keys["stack"][made]
    for name in ("made", "freed", "site"):
        rows[name] = values[name][made]
    return rows


def _objects(ended: EndedBooks, history: History, between: Callable[[], None]) -> Records:
    """Count those whose statistics are closed, and those whose creation is still in the history."""
    events = history.so_far()
    lifetimes = history.balanced.lifetimes
    _, alive = ended.read("OBJECTS", between)
    creates = events[(events["operation"] == Operation.CREATE) & (events["count"] > 0)]
    types = np.concatenate([lifetimes["type"], creates.view(CREATE_EVENT)["type"], alive["type"]])
    stacks = np.concatenate([lifetimes["create_stack"], creates["stack"], alive["stack"]])
    ones = np.ones(len(creates), np.int64)
    made = np.concatenate([lifetimes["count"].astype(np.int64), ones, np.zeros(len(alive), np.int64)])
    left = np.concatenate([np.zeros(len(made) - len(alive), np.int64), np.ones(len(alive), np.int64)])
    pairs = np.zeros(len(types), np.dtype([("type", "<u8"), ("stack", "<u8")]))
    pairs["type"], pairs["stack"] = types, stacks
    distinct, label = np.unique(pairs, return_inverse=True)
    rows = np.zeros(len(distinct), CHECKPOINT_TOTALS)
    rows["type"], rows["stack"] = distinct["type"], distinct["stack"]
    rows["made"] = np.bincount(label, made, minlength=len(distinct))
    rows["freed"] = np.maximum(np.bincount(label, made - left, minlength=len(distinct)), 0)
    return rows[rows["made"] > 0]
