"""The history of the counted objects: whole for those alive, statistics for those that ended."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tracer.aggregation import type_counts
from tracer.aggregation.balanced import Balance
from tracer.aggregation.broken_rules import BrokenRules
from tracer.aggregation.condensed import Condensed
from tracer.aggregation.courses import Courses
from tracer.aggregation.fates import ABSENT, Fate, Fates, judge
from tracer.aggregation.freed_holders import FreedHolders
from tracer.aggregation.grouping import REORDER_NS, Grouping, Indices, chosen, group, in_time_order
from tracer.aggregation.site_calls import SiteCalls
from tracer.aggregation.suspects import Suspects
from tracer.model.distinct_values import is_in
from tracer.model.events import ERROR_EVENT, EVENT, EventFlag
from tracer.model.operations import Operation
from tracer.model.snapshot import Records, TypeTotals
from tracer.model.statistics import BalancedStatistics

BUFFER_EVENTS = 500_000
BUSY_EVENTS = 1024
QUIET_EVENTS = 4
LIVE_EVENTS = 1_000_000
_END_OF_TIME = 2**64 - 1


class History:
    """Keeps the events of live objects; those of objects that ended become statistics.

    Memory grows with what is alive. Events wait in a buffer, and when it is full (`buffer_events`, or
    twice what the last folding left) all objects that ended are folded. An object ends with its event
    flagged LAST, or when another is created at its key; it is folded once its last event is older than
    the newest event by `reorder_ns`, since processors deliver their events in turns. The pairs of a
    live object with more than `busy_events` events are reduced to counts (`condensed`); where more
    than `live_events` would be kept, those of the busiest objects until no more are, but for those of
    QUIET_EVENTS or fewer.

    The history of an object whose create was lost is not kept: half of one accuses the wrong get.
    """

    def __init__(
        self,
        buffer_events: int = BUFFER_EVENTS,
        reorder_ns: int = REORDER_NS,
        busy_events: int = BUSY_EVENTS,
        live_events: int = LIVE_EVENTS,
    ) -> None:
        self._buffer_events = buffer_events
        self._reorder_ns = reorder_ns
        self._busy_events = busy_events
        self._most_live_events = live_events
        self._batches: list[Records] = []
        self._buffered = 0
        self._fold_at = buffer_events
        self._newest_ns = 0
        self._balance = Balance()
        self._condensed = Condensed()
        self._courses = Courses()
        self._broken = BrokenRules()
        self._suspects = Suspects()
        self._types = type_counts.type_tally()
        self.calls = SiteCalls()
        self._freed_holders = FreedHolders()
        self.events_seen = 0

    def add(self, events: Records) -> None:
        """Add a batch of EVENTs, roughly in order of time; those that are not of counted objects are passed over."""
        operation = events["operation"]
        broken = events[operation == Operation.ERROR].view(ERROR_EVENT)
        self._broken.add(broken)
        self._suspects.accuse(broken)
        freed = events[operation == Operation.HOLDER_FREED]
        if len(freed):
            self._newest_ns = max(self._newest_ns, int(freed["time_ns"].max()))
            self._freed_holders.add(freed)
        counted = chosen(events, (operation >= Operation.CREATE) & (operation <= Operation.DELETE))
        self.events_seen += len(counted)
        self.calls.add(counted)
        unknown = (counted["flags"] & EventFlag.UNKNOWN != 0) | (counted["serial"] == 0)
        deletes = counted["operation"] == Operation.DELETE
        self._types.add(type_counts.of_unknown(chosen(counted, unknown & ~deletes)))
        # A delete that ended nothing came after the end.
        idle = deletes & (counted["flags"] & EventFlag.LAST == 0)
        known = ~unknown & ~idle
        batch = in_time_order(counted if bool(known.all()) else chosen(counted, known))
        if len(batch):
            self._newest_ns = max(self._newest_ns, int(batch["time_ns"][-1]))
            self._batches.append(batch)
            self._buffered += len(batch)
        if self._buffered + self._freed_holders.waiting >= self._fold_at:
            self._fold(max(0, self._newest_ns - self._reorder_ns))
            self._fold_at = max(self._buffer_events, 2 * self._buffered)

    def live_events(self) -> Records:
        """Return the EVENTs of the objects that live, in order of time.

        Folds all that ended: events that belong before those already added must not come after this.
        """
        self._fold(_END_OF_TIME)
        return self._joined().copy()

    def so_far(self) -> Records:
        """Return at least the EVENTs of the objects that live, while more may come; in order of time."""
        self._fold(max(0, self._newest_ns - self._reorder_ns))
        return self._joined().copy()

    def condensed(self) -> Records:
        """Return what `live_events` leaves out of busy objects, as rows of dtype CONDENSED."""
        return self._condensed.rows()

    def freed_holders(self) -> Records:
        """Return blocks that were freed with a pointer to an object, as dtype FREED_HOLDER; complete after
        `live_events`."""
        return self._freed_holders.rows()

    def errors(self) -> Records:
        """Return a sample of the errors as ERROR_EVENTs; `represented` is the number each stands for."""
        return self._broken.events(ERROR_EVENT)

    def error_history(self) -> Records:
        """Return the EVENTs of the ended objects that errors are about, in order of time; complete after `live_events`.

        Only those of objects that were not yet folded when the error came, and of a bounded number.
        """
        return self._suspects.events()

    def error_counts(self) -> Records:
        """Return the exact number of errors of each kind, type, process and stacks, as dtype ERROR_COUNT."""
        return self._broken.counts()

    @property
    def balanced(self) -> BalancedStatistics:
        """The statistics of the objects folded so far; complete after `live_events`."""
        return replace(self._balance.statistics(), courses=self._courses.rows())

    def type_totals(self) -> tuple[TypeTotals, ...]:
        """Return the totals of all events so far, by type, process and generation."""
        events = self._joined()
        totals = type_counts.type_tally()
        totals.add(self._types.rows())
        if len(events):
            grouping = group(events)
            fates = judge(events, grouping, _END_OF_TIME)
            totals.add(type_counts.of_objects(events, grouping, fates))
        return type_counts.as_totals(totals.rows())

    def _joined(self) -> Records:
        """Return the buffer, in order of time."""
        if not self._batches:
            return np.zeros(0, dtype=EVENT)
        if len(self._batches) > 1:
            joined = np.concatenate(self._batches)
            self._batches.clear()  # before another copy is made
            self._batches.append(in_time_order(joined))
        return self._batches[0]

    def _fold(self, until_ns: int) -> None:
        events = self._joined()
        if len(events) == 0:
            return
        grouping = group(events)
        fates = judge(events, grouping, until_ns)
        gone = fates.fate != Fate.ALIVE
        self._freed_holders.fold(events, grouping, fates, until_ns)
        self._types.add(type_counts.of_objects(events, grouping, fates)[gone])
        self._fold_ended(events, grouping, fates)
        superseded = fates.create[fates.fate == Fate.SUPERSEDED]
        self._condensed.remove(events.take(grouping.order[superseded]))
        drop = gone[grouping.owner]
        drop |= self._condense(events, grouping, fates, until_ns, len(events) - int(drop.sum()))
        kept = np.ones(len(events), dtype=bool)
        kept[grouping.order[drop]] = False
        self._batches = [chosen(events, kept)]
        self._buffered = len(self._batches[0])

    def _fold_ended(self, events: Records, grouping: Grouping, fates: Fates) -> None:
        ended = fates.fate == Fate.ENDED
        theirs = ended[grouping.owner]
        if not bool(theirs.any()):
            return
        place = np.cumsum(theirs) - 1
        folded = events.take(grouping.order[theirs])
        owner = (np.cumsum(ended) - 1)[grouping.owner[theirs]]
        create, last = place[fates.create[ended]], place[fates.last[ended]]
        self._balance.fold(folded, owner, create, last)
        creates = folded.take(create)
        whole = ~is_in(creates["serial"], self._condensed.serials())
        healthy = ~self._suspects.take(folded, owner, creates)
        self._courses.fold(folded, owner, create, whole & healthy)
        self._balance.add_pairs(self._condensed.remove(creates))

    def _bound(self, sizes: Indices) -> int:
        """Return how many events an object may have so that all that have no more fit together."""
        sizes = np.sort(sizes)
        fitting = int(np.searchsorted(np.cumsum(sizes), self._most_live_events, side="right"))
        bound = int(sizes[fitting]) - 1 if fitting < len(sizes) else self._busy_events
        return min(self._busy_events, max(QUIET_EVENTS, bound))

    def _condense(
        self, events: Records, grouping: Grouping, fates: Fates, until_ns: int, kept: int
    ) -> npt.NDArray[np.bool_]:
        """Reduce the settled pairs of busy live objects to counts; return the places of their events."""
        sizes = np.diff(np.append(grouping.starts, len(events)))
        alive = (fates.fate == Fate.ALIVE) & (fates.create != ABSENT)
        bound = self._busy_events if kept <= self._most_live_events else self._bound(sizes[alive])
        busy = alive & (sizes > bound)
        taken: npt.NDArray[np.bool_] = busy[grouping.owner]
        if not bool(taken.any()):
            return taken
        taken &= events["time_ns"][grouping.order] <= until_ns
        owner = grouping.owner[taken]
        paired = self._condensed.condense(events.take(grouping.order[taken]), owner)
        taken[taken] = paired
        pairs = np.bincount(grouping.owner[taken], minlength=grouping.objects) // 2
        changed = np.flatnonzero(pairs)
        creates = events.take(grouping.order[fates.create[changed]])
        self._types.add(type_counts.of_pairs(creates, pairs[changed]))
        return taken
