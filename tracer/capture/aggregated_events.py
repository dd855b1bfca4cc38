"""Events of the ring, aggregated as they are read: those of counted objects, and those of mapped memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tracer.aggregation.history import History
from tracer.aggregation.mapped import MappedMemory
from tracer.kernel.rings import Ring
from tracer.late_dataclasses import dataclass
from tracer.model.addresses import Space, space_number, space_numbers
from tracer.model.distinct_values import distinct
from tracer.model.events import EVENT
from tracer.model.snapshot import Records
from tracer.model.statistics import BalancedStatistics
from tracer.spaces.listener import Moment, SpaceListener


@dataclass(frozen=True)
class Aggregates:
    """What the events come to: memory that is mapped or was unmapped lately, the history of counted objects, what that
    of busy ones was condensed to, and the rules that were broken."""

    mapped: Records
    unmapped: Records
    history: Records
    condensed: Records
    freed_holders: Records
    balanced: BalancedStatistics
    errors: Records
    error_history: Records


class AggregatedEvents(SpaceListener):
    """`started_ns` gives the kernel's clock when the trace began."""

    def __init__(self, ring: Ring, started_ns: Callable[[], int]) -> None:
        self._ring, self._started_ns = ring, started_ns
        self.history = History()
        self.mapped_memory = MappedMemory()
        self._spaces: set[int] = set()
        """Numbers of those that events came from."""

    def read(self) -> None:
        """Take what is in the ring."""
        events = self._ring.read_records(EVENT)
        if len(events):
            events["time_ns"] -= np.minimum(events["time_ns"], np.uint64(self._started_ns()))
            self.history.add(events)
            self.mapped_memory.add(events)
            self._spaces.update(distinct(space_numbers(events)).tolist())

    def has_told(self, space: Space) -> bool:
        """Tell whether a process that stands mapped or unmapped anything, or touched a counted object."""
        self.read()
        return space_number(space) in self._spaces

    def forked(self, parent: Space, child: Space, moment: Moment) -> None:
        """Aggregate what came before, so that no later event of either is read first."""
        self.read()
        self.mapped_memory.fork(parent, child, moment.trace_ns)

    def aggregated(self, *, running: bool) -> Aggregates:
        """Return what all events come to by now; `running`: while the trace goes on."""
        memory, history = self.mapped_memory, self.history
        mapped = memory.so_far() if running else memory.live()
        # live_events folds all that ended, before the statistics are read
        events = history.so_far() if running else history.live_events()
        return Aggregates(
            mapped, memory.unmapped(), events, history.condensed(), history.freed_holders(), history.balanced,
            history.errors(), history.error_history(),
        )  # fmt: skip
