"""The memory that the target mapped itself: interval arithmetic over mmap, munmap and mremap."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tracer.aggregation.freed_counters import FREED_BLOCK
from tracer.aggregation.grouping import REORDER_NS
from tracer.aggregation.mapped_space import Birth, MappedSpace, MappedTotals
from tracer.late_dataclasses import dataclass
from tracer.model.addresses import Space
from tracer.model.events import MAPPING_EVENT, RemapRecord
from tracer.model.operations import Operation
from tracer.model.records import MAPPED_RECORD
from tracer.model.snapshot import Records

_OPERATIONS = (Operation.MAP, Operation.UNMAP, Operation.REMAP, Operation.UNDO)
_FIELDS = (
    "time_ns", "address", "length", "stack", "old_address", "old_length",
    "pid", "tid", "generation", "site", "operation", "remap",
)  # fmt: skip


class _Step(NamedTuple):
    """The _FIELDS of one MAPPING_EVENT."""

    time_ns: int
    address: int
    length: int
    stack: int
    old_address: int
    """Of a map: the flags of mmap."""
    old_length: int
    pid: int
    tid: int
    generation: int
    site: int
    operation: int
    remap: int


@dataclass(frozen=True)
class _Fork:
    time_ns: int
    parent: Space
    child: Space


class MappedMemory:
    """Follows what each address space has mapped.

    Events and forks come from different rings and are applied in order of time, once they are older than the
    newest by `reorder_ns`. A mapping replaces what it covers, with MAP_FIXED or without: what still
    stands in the way was unmapped unseen.
    """

    def __init__(self, reorder_ns: int = REORDER_NS) -> None:
        self._reorder_ns = reorder_ns
        self._spaces: dict[Space, MappedSpace] = {}
        self._waiting: list[_Step | _Fork] = []

    def add(self, events: Records) -> None:
        """Add a batch of EVENTs, roughly in order of time; other operations are passed over."""
        mine = events[np.isin(events["operation"], _OPERATIONS)]
        if len(mine) == 0:
            return
        self._waiting += [_Step(*row) for row in mine.view(MAPPING_EVENT)[list(_FIELDS)].tolist()]
        self._settle(self._reorder_ns)

    def fork(self, parent: Space, child: Space, time_ns: int) -> None:
        """Note that `child` began as a copy of `parent`: what it then has mapped is inherited.

        Of what is read at one time, forks are to be told before the events: a fork that comes when
        younger events have been applied copies what `parent` has by then.
        """
        self._waiting.append(_Fork(time_ns, parent, child))

    def live(self) -> Records:
        """Return what is mapped, as MAPPED_RECORDs by pid, generation and start.

        `flags` are mmap's, without a huge page's size, and MappedFlag.INHERITED. Pieces of one mapping
        that another splits are records of their own, with the same time and stack. Applies all events:
        none that belongs before them must come after this.
        """
        self._settle(0)
        return self.so_far()

    def so_far(self) -> Records:
        """Return the same while more may come: what the youngest events did is not in it."""
        rows = [
            (start, end - start, birth.time_ns, birth.stack, pid, birth.tid, generation, birth.site,
             birth.flags, birth.reserved_ns)
            for (pid, generation), mapped in sorted(self._spaces.items())
            for start, end, birth in mapped.pieces()
        ]
        return np.array(rows, dtype=MAPPED_RECORD)

    def unmapped(self) -> Records:
        """Return what was unmapped lately, as FREED_BLOCKs."""
        rows = [
            (removal.start, removal.time_ns, removal.end - removal.start, 0, removal.stack, pid, generation, 0)
            for (pid, generation), mapped in sorted(self._spaces.items()) for removal in mapped.unmapped()
        ]  # fmt: skip
        return np.array(rows, FREED_BLOCK)

    def totals(self) -> Mapping[Space, MappedTotals]:
        """Return what each address space made and freed itself; applies all events, as `live` does."""
        self._settle(0)
        return {space: mapped.totals() for space, mapped in sorted(self._spaces.items())}

    def _settle(self, reorder_ns: int) -> None:
        """Apply what is older than the newest by `reorder_ns`."""
        if not self._waiting:
            return
        self._waiting.sort(key=lambda item: item.time_ns)
        until_ns = self._waiting[-1].time_ns - reorder_ns
        ripe = bisect_right(self._waiting, until_ns, key=lambda item: item.time_ns)
        for item in self._waiting[:ripe]:
            if isinstance(item, _Fork):
                self._space(item.child).inherit(self._space(item.parent))
            else:
                self._apply(item)
        del self._waiting[:ripe]

    def _space(self, space: Space) -> MappedSpace:
        return self._spaces.setdefault(space, MappedSpace())

    def _apply(self, step: _Step) -> None:
        space = self._space((step.pid, step.generation))
        birth = Birth(step.time_ns, step.stack, step.tid, step.site)
        if step.operation == Operation.MAP:
            space.map(step.address, step.length, birth.with_flags(step.old_address))
        elif step.operation == Operation.UNMAP:
            space.remove(step.tid, step.address, step.length, step.time_ns, step.stack)
        elif step.operation == Operation.UNDO:
            space.undo(step.tid)
        elif step.remap == RemapRecord.ENTRY:
            space.remove(step.tid, step.old_address, step.old_length)
        else:
            space.move(step.tid, step.address, step.length, birth)
