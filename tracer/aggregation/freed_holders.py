"""Freed holders: blocks that were freed while a pointer to a counted object stood in them."""

from __future__ import annotations

import numpy as np

from tracer.aggregation.fates import ABSENT, Fate, Fates
from tracer.aggregation.grouping import Grouping, Indices, owners
from tracer.aggregation.tally import Tally, changes
from tracer.model.events import CREATE_EVENT, HOLDER_FREED_EVENT, IDENTITY
from tracer.model.hashing import Hashes
from tracer.model.operations import Operation
from tracer.model.snapshot import Records
from tracer.model.statistics import FREED_HOLDER, NEVER_PUT


class FreedHolders:
    """Grows with the objects that live and the stacks where blocks are made and freed, not with what is freed."""

    def __init__(self) -> None:
        self._waiting: list[Records] = []
        self.waiting = 0
        """Events that are not taken in yet."""
        self._tally = Tally(FREED_HOLDER)

    def add(self, events: Records) -> None:
        """Add EVENTs of freed holders."""
        self._waiting.append(events)
        self.waiting += len(events)

    def fold(self, events: Records, grouping: Grouping, fates: Fates, until_ns: int) -> None:
        """Take in what was freed until then, by what the objects went through. `events`: EVENTs in order of time.

        What held one that is neither alive nor ended well is forgotten.
        """
        if not self._waiting and not len(self._tally.unordered()):
            return
        first = events.take(grouping.order[grouping.starts])
        self._end(first, fates)
        if not self._waiting:
            return
        waiting = np.concatenate(self._waiting)
        is_due = waiting["time_ns"] <= until_ns
        due, later = waiting[is_due], waiting[~is_due]
        self._waiting, self.waiting = [later] if len(later) else [], len(later)
        owner = owners(due, first)
        known = np.flatnonzero(owner >= 0)
        due, owner = due[known], owner[known]
        fate = fates.fate[owner]
        kept = ((fate == Fate.ALIVE) | (fate == Fate.ENDED)) & (fates.create[owner] != ABSENT)
        due, owner = due[kept], owner[kept]
        if not len(due):
            return
        rows = np.zeros(len(due), FREED_HOLDER)
        freed = due.view(HOLDER_FREED_EVENT)
        for name in IDENTITY:
            rows[name] = np.where(fates.fate[owner] == Fate.ALIVE, due[name], 0)
        rows["offset"], rows["size"] = freed["offset"], freed["block_size"]
        rows["type"] = events.view(CREATE_EVENT)["type"][grouping.order[fates.create[owner]]]
        rows["made"], rows["freed"], rows["count"] = freed["birth"], freed["stack"], 1
        rows["put"] = _puts_before(due, owner, events, grouping)
        self._tally.add(rows)

    def rows(self) -> Records:
        """Return rows of dtype FREED_HOLDER."""
        return self._tally.rows()

    def _end(self, first: Records, fates: Fates) -> None:
        """Have what is known of objects that ended be of their types; forget that of others that are gone. `first`: of
        each object an EVENT."""
        rows = self._tally.unordered()
        owner = owners(rows, first)
        gone = (owner >= 0) & (fates.fate[owner] != Fate.ALIVE)
        ended = rows[gone & (fates.fate[owner] == Fate.ENDED)]
        self._tally.drop(gone)
        for name in IDENTITY:
            ended[name] = 0
        self._tally.add(ended)


def _puts_before(rows: Records, owner: Indices, events: Records, grouping: Grouping) -> Hashes:
    """Return per row the stack of its object's last put before it by the same thread."""
    is_asked = np.zeros(grouping.objects, np.bool_)
    is_asked[owner] = True
    places = np.flatnonzero(is_asked[grouping.owner])
    places = places[events["operation"][grouping.order[places]] == Operation.PUT]
    puts = events[grouping.order[places]]
    both = np.concatenate([puts, rows])
    of = np.concatenate([grouping.owner[places], owner])
    order = np.lexsort((both["time_ns"], both["tid"], of))
    is_put = order < len(puts)
    last = np.maximum.accumulate(np.where(is_put, np.arange(len(order)), -1))
    begins = np.maximum.accumulate(np.where(changes([of[order], both["tid"][order]]), np.arange(len(order)), -1))
    found = np.where(last >= begins, both["stack"][order[np.maximum(last, 0)]], NEVER_PUT)
    stacks: Hashes = np.empty(len(order), np.uint64)
    stacks[order] = found
    return stacks[len(puts) :]
