"""Pairs of gets and the puts that gave them back."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracer.aggregation.grouping import Indices, stable_order
from tracer.aggregation.tally import changes
from tracer.late_dataclasses import dataclass
from tracer.model.events import CHANGE_EVENT
from tracer.model.operations import Operation
from tracer.model.snapshot import Records


@dataclass(frozen=True)
class Pairs:
    """Rows of gets and of the puts that gave them back, place by place, and of those left over.

    `exact`: per pair, whether a holder named in both says so; the others are paired by order alone.
    `gets`: rows of gets without a put; `puts`: rows of puts of references that a create gave.
    """

    get: Indices
    put: Indices
    exact: npt.NDArray[np.bool_]
    gets: Indices
    puts: Indices


def pair(events: Records, owner: Indices) -> Pairs:
    """Pair gets with puts of the same object.

    `events`: EVENTs object by object, each object's in order of time; `owner`: the object of each.
    First those with the same holder, then the last in, first out within one thread, then over threads.
    """
    events = events.view(CHANGE_EVENT)
    operation = events["operation"]
    rest = np.flatnonzero((operation == Operation.GET) | (operation == Operation.PUT))
    found: list[tuple[Indices, Indices, bool]] = []
    for choose, field, exact in ((_held, "holder", True), (_shared, "tid", False), (_all, "", False)):
        rows = choose(events, owner, rest)
        if len(rows) == 0:
            continue
        gets, puts = _last_in_first_out(events, owner, rows, field)
        found.append((gets, puts, exact))
        taken = np.zeros(len(events), dtype=bool)
        taken[gets] = taken[puts] = True
        rest = rest[~taken[rest]]
    is_get = operation[rest] == Operation.GET
    return Pairs(
        np.concatenate([_none(), *(gets for gets, _, _ in found)]),
        np.concatenate([_none(), *(puts for _, puts, _ in found)]),
        np.concatenate([np.zeros(0, dtype=bool), *(np.full(len(gets), exact) for gets, _, exact in found)]),
        rest[is_get],
        rest[~is_get],
    )


def _none() -> Indices:
    return np.zeros(0, dtype=np.int64)


def _held(events: Records, owner: Indices, rows: Indices) -> Indices:
    held: Indices = rows[events["holder"][rows] != 0]
    return held


def _shared(events: Records, owner: Indices, rows: Indices) -> Indices:
    """Return the rows of objects that more than one thread gets and puts."""
    if len(rows) == 0:
        return rows
    apart = changes([owner[rows]])
    starts = np.flatnonzero(apart)
    tid = events["tid"][rows]
    several = np.minimum.reduceat(tid, starts) != np.maximum.reduceat(tid, starts)
    shared: Indices = rows[several[np.cumsum(apart) - 1]]
    return shared


def _all(events: Records, owner: Indices, rows: Indices) -> Indices:
    return rows


def _last_in_first_out(events: Records, owner: Indices, rows: Indices, field: str) -> tuple[Indices, Indices]:
    """Return rows of gets and of their puts, paired like brackets within each owner (and value of `field`).

    A get opens the level that its put closes: sorted by level, the two stand side by side.
    """
    begins = changes([owner[rows]])
    if field:
        _, dense = np.unique(events[field][rows], return_inverse=True)
        keys = owner[rows] * (int(dense.max()) + 1) + dense
        order = stable_order(keys.astype(np.uint64))
        rows = rows[order]
        begins = changes([keys[order]])
    is_get = events["operation"][rows] == Operation.GET
    step = np.where(is_get, 1, -1)
    run = np.cumsum(begins) - 1
    depth = np.cumsum(step)
    level = depth - (depth - step)[begins][run] + ~is_get
    level -= level.min()
    keys = run * (int(level.max()) + 1) + level
    order = stable_order(keys.astype(np.uint64))
    keys, is_get, rows = keys[order], is_get[order], rows[order]
    paired = np.flatnonzero((keys[1:] == keys[:-1]) & is_get[:-1] & ~is_get[1:])
    return rows[paired], rows[paired + 1]
