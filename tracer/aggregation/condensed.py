"""Get and put pairs of busy objects that still live, reduced to counts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracer.aggregation.grouping import Indices, owners
from tracer.aggregation.pairing import pair
from tracer.aggregation.tally import Tally
from tracer.model.distinct_values import distinct, is_in
from tracer.model.events import CREATE_EVENT, IDENTITY
from tracer.model.snapshot import Records
from tracer.model.statistics import CONDENSED, PAIR


class Condensed:
    """What was taken out of the histories of busy objects; grows with the objects and their distinct stacks."""

    def __init__(self) -> None:
        self._tally = Tally(CONDENSED)

    def condense(self, events: Records, owner: Indices) -> npt.NDArray[np.bool_]:
        """Take in the paired gets and puts of `events`, and return which events those are.

        `events`: EVENTs object by object, each object's in order of time; `owner`: the object of each.
        """
        found = pair(events, owner)
        rows = np.zeros(len(found.get), dtype=CONDENSED)
        for name in IDENTITY:
            rows[name] = events[name][found.get]
        rows["get_stack"], rows["put_stack"] = events["stack"][found.get], events["stack"][found.put]
        rows["count"], rows["exact"] = 1, found.exact
        self._tally.add(rows)
        taken = np.zeros(len(events), dtype=bool)
        taken[found.get] = taken[found.put] = True
        return taken

    def rows(self) -> Records:
        return self._tally.rows()

    def serials(self) -> npt.NDArray[np.uint32]:
        """Return the serials of the objects that rows are kept of."""
        serials: npt.NDArray[np.uint32] = distinct(self._tally.unordered()["serial"])
        return serials

    def remove(self, creates: Records) -> Records:
        """Forget the objects that `creates` (their CREATE events) began; return what was kept of them, as PAIRs."""
        rows = self._tally.unordered()
        gone = is_in(rows["serial"], creates["serial"])
        if not bool(gone.any()):
            return np.zeros(0, dtype=PAIR)
        owner = owners(rows, creates)
        gone = owner >= 0
        pairs = np.zeros(int(gone.sum()), dtype=PAIR)
        for name in ("get_stack", "put_stack", "count", "exact"):
            pairs[name] = rows[name][gone]
        pairs["type"] = creates.view(CREATE_EVENT)["type"][owner[gone]]
        self._tally.drop(gone)
        return pairs
