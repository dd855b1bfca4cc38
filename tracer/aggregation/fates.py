"""Fates of objects, as far as their events tell."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tracer.aggregation.grouping import Grouping, Indices
from tracer.aggregation.tally import changes
from tracer.late_dataclasses import dataclass
from tracer.model.distinct_values import is_in
from tracer.model.events import EventFlag
from tracer.model.operations import Operation
from tracer.model.snapshot import Records

ABSENT = -1


class Fate(IntEnum):
    ALIVE = 0
    """Or not settled: an event of it may still come."""
    ENDED = 1
    SUPERSEDED = 2
    """Another object was created at its address, and its end was not seen: that event was lost, or there was none."""
    ORPHAN = 3
    """Its create was lost: neither its type nor its whole history are known."""
    VOID = 4
    """Created with count 0: never a live object."""


@dataclass(frozen=True)
class Fates:
    """Per object of a Grouping: its Fate, and the places in `order` of its create and its end, or ABSENT."""

    fate: npt.NDArray[np.int8]
    create: Indices
    last: Indices


def judge(events: Records, grouping: Grouping, until_ns: int) -> Fates:
    """Say what became of each object; those with an event after `until_ns` count as alive.

    `events`: EVENTs in order of time.
    """
    operation = events["operation"][grouping.order]
    creates = operation == Operation.CREATE
    # On a create the flag can only tell of the object before it, which the new create ends anyway.
    ends = (events["flags"][grouping.order] & EventFlag.LAST != 0) & ~creates
    create = _first_place(grouping, creates)
    last = _first_place(grouping, ends)
    fate = np.zeros(grouping.objects, dtype=np.int8)
    fate[last != ABSENT] = Fate.ENDED
    fate[_superseded(events, grouping, create, last, until_ns)] = Fate.SUPERSEDED
    counts = events["count"][grouping.order[create]]
    fate[counts <= 0] = Fate.VOID
    fate[create == ABSENT] = Fate.ORPHAN
    newest = events["time_ns"][grouping.order[np.append(grouping.starts[1:], len(events)) - 1]]
    fate[newest > until_ns] = Fate.ALIVE
    return Fates(fate, create, last)


def _first_place(grouping: Grouping, chosen: npt.NDArray[np.bool_]) -> Indices:
    places = np.flatnonzero(chosen)[::-1]
    first = np.full(grouping.objects, ABSENT, dtype=np.int64)
    first[grouping.owner[places]] = places
    return first


def _superseded(events: Records, grouping: Grouping, create: Indices, last: Indices, until_ns: int) -> Indices:
    """Return the objects without an end at whose key a later object was created, not after `until_ns`."""
    born = np.flatnonzero(create != ABSENT)
    rows = grouping.order[create[born]]
    endless = last[born] == ABSENT
    shared = is_in(events["address"][rows], events["address"][rows[endless]])
    born, rows, endless = born[shared], rows[shared], endless[shared]
    if len(rows) < 2:
        return np.zeros(0, dtype=np.int64)
    columns = [events[name][rows] for name in ("group", "generation", "pid", "address")]
    order = np.lexsort([rows, *columns])
    followed = np.append(~changes([column[order] for column in columns])[1:], False)
    followed[:-1] &= events["time_ns"][rows[order[1:]]] <= until_ns
    superseded: Indices = born[order[followed & endless[order]]]
    return superseded
