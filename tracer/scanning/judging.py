"""Judgement of address spaces that were read: the classes of what is outstanding, and who holds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tracer.model.holders import HOLDER_RECORD
from tracer.model.reachability import REACH_RECORD, Scan
from tracer.model.snapshot import Process, Records, Snapshot, Stack
from tracer.reachability.reach_records import reach_and_holders
from tracer.scanning.outstanding import Heaps, OutstandingTable, RowsBySpace
from tracer.scanning.reasons import UNREADABLE, why_not
from tracer.scanning.side_by_side import side_by_side
from tracer.scanning.space_read import SpaceRead
from tracer.scanning.surroundings import ModuleTable, surroundings
from tracer.scanning.thread_stacks import frame_spans

_LEAST_OF_PART = 16
"""Address spaces: to judge one takes 2 to 20 ms, to fork a copy some 10 ms."""


class _Found(NamedTuple):
    """Of one address space."""

    scan: Scan
    reach: Records
    holders: Records
    stacks: dict[int, Stack]
    """Those that words are on, which nothing else names."""


_Read = tuple[Process, SpaceRead | None]


def judged(
    snapshot: Snapshot, reads: Sequence[SpaceRead | None], freed: Records, modules: ModuleTable,
    hindrance: str | None, heaps: Heaps | None = None,
) -> Snapshot:  # fmt: skip
    """Return the snapshot with what was looked into, the classes of what is outstanding, and who holds it.

    `reads`: of each process of the snapshot what was read, None where nobody looked. `freed`: FREED_BLOCKs; `modules`:
    of the snapshot. `hindrance`: why nothing was looked into. Many are judged side by side.
    """
    judging = _Judging(snapshot, freed, modules, hindrance, heaps)
    rows = list(zip(snapshot.processes, reads, strict=True))
    found = [one for one in side_by_side(judging.of, rows, _LEAST_OF_PART) if one is not None]
    stacks = {number: stack for one in found for number, stack in one.stacks.items()}
    return replace(
        snapshot, scans=tuple([one.scan for one in found]),
        reach=np.concatenate([np.zeros(0, REACH_RECORD), *(one.reach for one in found)]),
        holders=np.concatenate([np.zeros(0, HOLDER_RECORD), *(one.holders for one in found)]),
        stacks={**snapshot.stacks, **stacks} if stacks else snapshot.stacks,
    )  # fmt: skip


class _Judging:
    def __init__(
        self, snapshot: Snapshot, freed: Records, modules: ModuleTable, hindrance: str | None, heaps: Heaps | None
    ) -> None:
        self._snapshot, self._modules, self._hindrance = snapshot, modules, hindrance
        self._alive, self._freed = OutstandingTable(snapshot, heaps), RowsBySpace(freed)

    def of(self, one: _Read) -> _Found | None:
        """Judge one address space; None where nothing is outstanding there."""
        process, read = one
        space = process.space
        alive, freed = self._alive.of(space), self._freed.of(space)
        until = read.memory.time_ns if read is not None and read.memory is not None else 0
        by_then = freed[freed["time_ns"] <= until]  # what was freed later still held
        around = surroundings(self._snapshot, process, self._modules, by_then)
        if not any(map(len, (alive.allocations, alive.objects, alive.mapped, around.gone))):
            return None
        reason = self._hindrance or why_not(process, read.scan.reason if read else None, is_known=read is not None)
        if reason is not None or read is None or read.memory is None:
            scan = Scan(*space, reason=reason or UNREADABLE, held_ns=read.scan.held_ns if read else 0)
            return _Found(scan, np.zeros(0, REACH_RECORD), np.zeros(0, HOLDER_RECORD), {})
        frames = frame_spans(read.walks)
        is_older = self._snapshot.mode == "attached"
        is_sure = not read.is_unsettled and self._snapshot.is_whole(*space)
        free_holds = is_older or not is_sure
        reach, holders = reach_and_holders(
            read.memory, alive, replace(around, frames=frames.spans), space, free_holds=free_holds,
            knows_freed=is_older and is_sure, still_held=freed[freed["time_ns"] > until],
        )  # fmt: skip
        resident = read.pages.with_blocks(
            alive.blocks, knows_all=not free_holds, is_of_glibc=alive.heaps is None
        ) if read.pages is not None else None  # fmt: skip
        scan = replace(read.scan, blocks=len(alive.allocations), resident=resident)
        return _Found(scan, reach, holders, frames.named_by(holders))
