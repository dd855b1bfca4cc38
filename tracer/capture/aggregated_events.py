"""Events of the ring, aggregated as they are read: those of counted objects, and those of mapped memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tracer.aggregation.history import History
from tracer.aggregation.mapped import MappedMemory
from tracer.kernel.rings import Ring
from tracer.model.addresses import Space
from tracer.model.events import EVENT
from tracer.spaces.listener import Moment, SpaceListener


class AggregatedEvents(SpaceListener):
    """`started_ns` gives the kernel's clock when the trace began."""

    def __init__(self, ring: Ring, started_ns: Callable[[], int]) -> None:
        self._ring, self._started_ns = ring, started_ns
        self.history = History()
        self.mapped_memory = MappedMemory()

    def read(self) -> None:
        """Take what is in the ring."""
        events = self._ring.read_records(EVENT)
        if len(events):
            events["time_ns"] -= np.minimum(events["time_ns"], np.uint64(self._started_ns()))
            self.history.add(events)
            self.mapped_memory.add(events)

    def forked(self, parent: Space, child: Space, moment: Moment) -> None:
        """Aggregate what came before, so that no later event of either is read first."""
        self.read()
        self.mapped_memory.fork(parent, child, moment.trace_ns)
