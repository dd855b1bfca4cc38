"""Counters that changed without a stub: the value read is not the count followed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracer.analysis.groups import Indices, sorted_runs
from tracer.model.events import EventFlag
from tracer.model.operations import Operation
from tracer.model.records import ObjectFlag
from tracer.model.snapshot import Records


def drifted(objects: Records, history: Records, owner: Indices) -> npt.NDArray[np.bool_]:
    """Return for each object whether its counter surely changed without a stub, shape (len(objects),).

    With one thread the last reading says it. With more, a reading may fall between another thread's probe and
    its instruction, so that the last two readings must agree. `owner`: as from `history.owners`.
    """
    read = objects["flags"] & ObjectFlag.COUNT_UNREAD == 0
    differs = (objects["drift"] != 0) & read
    threads = objects["flags"] & ObjectFlag.THREADS != 0
    sure = differs & ~threads
    if (differs & threads).any():
        sure |= differs & threads & _last_two_agree(history, owner, len(objects))
    return np.asarray(sure)


def _last_two_agree(history: Records, owner: Indices, objects: int) -> npt.NDArray[np.bool_]:
    operation = history["operation"]
    counting = (operation == Operation.GET) | (operation == Operation.PUT)
    rows = np.flatnonzero((owner >= 0) & counting & (history["flags"] & EventFlag.COUNT_UNREAD == 0))
    agree = np.zeros(objects, dtype=np.bool_)
    if len(rows) < 2:
        return agree
    before = history["count"][rows] - np.where(operation[rows] == Operation.GET, 1, -1)
    drift = history["count_read"][rows] - before
    order, bounds = sorted_runs(owner[rows], objects)
    two = np.flatnonzero(np.diff(bounds) >= 2)
    last, previous = drift[order[bounds[two + 1] - 1]], drift[order[bounds[two + 1] - 2]]
    agree[two] = (last == previous) & (last != 0)
    return agree
