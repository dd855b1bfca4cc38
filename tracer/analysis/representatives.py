"""The lives of outstanding objects: a few of each group stand for all of it."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import numpy.typing as npt

from tracer.analysis.groups import Column, Indices, group_rows, sorted_runs
from tracer.analysis.hashing import mixed, sums
from tracer.analysis.held_slots import HeldSlots
from tracer.analysis.history import Calls, owners
from tracer.analysis.lives import Life, life
from tracer.analysis.scaling import Floats
from tracer.analysis.slots import Keys
from tracer.late_dataclasses import dataclass
from tracer.model.events import CHANGE_EVENT
from tracer.model.operations import Operation
from tracer.model.snapshot import Records

_MOST_PER_GROUP = 8
_MOST_ORDERED = 512


@dataclass(frozen=True)
class Held:
    """A reference taken for a holder and not given back by it."""

    stack: int
    holder: int


@dataclass(frozen=True)
class Representative:
    """What one outstanding object went through, standing for `objects` alike.

    `life` leaves out what `held` names, and what a holder gave back. `in_order`: references of each get that are
    given back at each put, last in, first out within a thread, then over threads; shape (gets, puts).
    """

    life: Life
    held: tuple[Held, ...]
    in_order: Floats
    objects: int
    complete: bool
    """False where events of it are missing."""
    slots: Keys = frozenset()
    """Keys of the slots of living blocks that hold it."""
    freed_slots: Keys = frozenset()
    """Keys of the slots of blocks that were freed without a put of it."""


class Representatives:
    """Finds representatives among `objects`, whose events are in `history` and `condensed`."""

    def __init__(
        self, objects: Records, history: Records, owner: Indices, calls: Calls, condensed: Records, slots: HeldSlots
    ) -> None:
        self._slots = slots
        self._objects, self._history, self._condensed = objects, history, condensed
        chosen = np.flatnonzero(
            (owner >= 0) & ((history["operation"] == Operation.GET) | (history["operation"] == Operation.PUT))
        )
        order, self._bounds = sorted_runs(owner[chosen], len(objects))
        self._events = chosen[order]
        pairs = owners(condensed, objects)
        self._pairs, self._pair_bounds = sorted_runs(np.where(pairs < 0, len(objects), pairs), len(objects) + 1)
        hashes = mixed(calls.operation, calls.stack, calls.count)
        alike = sums(hashes, calls.object, len(objects))
        self._alike = group_rows(alike, objects["stack"], objects["initial"]).label

    def of(self, rows: Indices) -> list[Representative]:
        """Return representatives of the objects `rows`, those that stand for most first."""
        _, first, counts = np.unique(self._alike[rows], return_index=True, return_counts=True)
        best = np.lexsort([first, -counts])[:_MOST_PER_GROUP]
        return [self._one(int(rows[first[one]]), int(counts[one])) for one in best]

    def _one(self, row: int, objects: int) -> Representative:
        record = self._objects[row]
        events = self._history[self._events[self._bounds[row] : self._bounds[row + 1]]]
        pairs = self._condensed[self._pairs[self._pair_bounds[row] : self._pair_bounds[row + 1]]]
        paired, open_gets = _by_holder(events)
        plain = events[~paired & ~open_gets]
        one = _life(plain, pairs, record)
        held = tuple(Held(int(event["stack"]), int(event["holder"])) for event in events[open_gets].view(CHANGE_EVENT))
        if held and one.remaining < 0:  # a holder gave its reference back by a put that names no holder
            plain, held = events[~paired], ()
            one = _life(plain, pairs, record)
        made = len(events) + 2 * int(pairs["count"].sum())
        complete = made == int(record["gets"]) + int(record["puts"])
        slots, freed = self._slots.of(record), self._slots.freed(record)
        return Representative(one, held, _in_order(plain, one), objects, complete, slots, freed)


def _life(events: Records, pairs: Records, record: np.void) -> Life:
    """Put a life together; condensed pairs may stand anywhere in time."""
    gets, puts = np.full(len(pairs), Operation.GET), np.full(len(pairs), Operation.PUT)
    return life(
        np.concatenate([gets, events["operation"], puts]),
        np.concatenate([pairs["get_stack"], events["stack"], pairs["put_stack"]]),
        int(record["initial"]),
        int(record["stack"]),
        count=np.concatenate([pairs["count"], np.ones(len(events), dtype=np.uint64), pairs["count"]]),
    )


def _by_holder(events: Records) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which events a holder pairs, and which gets for a holder are not given back by it."""
    paired, open_gets = np.zeros(len(events), dtype=bool), np.zeros(len(events), dtype=bool)
    waiting: defaultdict[int, list[int]] = defaultdict(list)
    holders = events.view(CHANGE_EVENT)["holder"]
    for place in np.flatnonzero(holders).tolist():
        gets = waiting[int(holders[place])]
        if events["operation"][place] == Operation.GET:
            gets.append(place)
        elif gets:
            paired[[gets.pop(), place]] = True
    for gets in waiting.values():
        open_gets[gets] = True
    return paired, open_gets


def _in_order(events: Records, one: Life) -> Floats:
    rows = {stack: row for row, stack in enumerate(one.gets) if row}
    columns = {stack: column for column, stack in enumerate(one.puts)}
    found = np.zeros((len(one.gets), len(one.puts)))
    if len(events) > _MOST_ORDERED:
        return found
    for get, put in last_in_first_out(events["operation"], events["tid"]):
        row = 0 if get is None else rows[int(events["stack"][get])]
        found[row, columns[int(events["stack"][put])]] += 1
    return found


def order_of_steps(one: Life) -> Floats:
    """Return the pairs last in, first out of the steps of a life, whatever the thread; shape (gets, puts)."""
    rows = {stack: row for row, stack in enumerate(one.gets) if row}
    columns = {stack: column for column, stack in enumerate(one.puts)}
    found = np.zeros((len(one.gets), len(one.puts)))
    waiting: list[list[int]] = [[0, round(float(one.taken[0]))]]
    for operation, stack, count in one.steps:
        if operation == Operation.GET:
            waiting.append([rows[stack], count])
        while operation == Operation.PUT and count > 0 and waiting:
            row, left = waiting.pop()
            found[row, columns[stack]] += min(left, count)
            if left > count:
                waiting.append([row, left - count])
            count -= left
    return found


def last_in_first_out(operation: Column, tid: Column) -> list[tuple[int | None, int]]:
    """Pair puts with the last get of their thread, else of any thread, else with the birth (None)."""
    waiting: defaultdict[int, list[int]] = defaultdict(list)
    pairs: list[tuple[int | None, int]] = []
    for place, (what, thread) in enumerate(zip(operation.tolist(), tid.tolist(), strict=True)):
        if what == Operation.GET:
            waiting[thread].append(place)
            continue
        gets = waiting[thread] or max(waiting.values(), key=lambda places: places[-1:], default=[])
        pairs.append((gets.pop() if gets else None, place))
    return pairs
