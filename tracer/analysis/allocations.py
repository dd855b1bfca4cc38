"""Live allocations, merged by where they were made."""

from __future__ import annotations

from functools import partial

import numpy as np

from tracer.analysis.blocks import MergedBlocks, blocks_of, merge_blocks
from tracer.analysis.estimates import alike, estimated
from tracer.analysis.evidence import Evidence
from tracer.analysis.free_sites import FreeSites
from tracer.analysis.groups import group_rows, sorted_runs
from tracer.analysis.object_memory import NumberedObjects
from tracer.analysis.reached import reached
from tracer.analysis.trends import trend
from tracer.analysis.turnover import Turnovers, block_turnover
from tracer.model.findings import INHERITED, Leak
from tracer.model.reachability import KIND_ALLOCATION
from tracer.model.selection import Selection
from tracer.model.snapshot import Records, Snapshot

_KIND = "allocation"
_MANY = 1 << 16
"""Blocks: some hundred forks of a shell have them. Of 900,000 there are 370,000 entries, which take 0.8 GB."""


def allocation_leaks(evidence: Evidence, objects: NumberedObjects) -> list[Leak]:
    """Merge the live allocations; add what was made and freed at the same stacks, and whose memory they are."""
    snapshot = evidence.snapshot
    blocks = blocks_of(snapshot.allocations, "address", "size", _KIND, evidence, evidence.blocks_reached)
    merged = merge_blocks(blocks, _KIND, evidence, objects)
    turnovers, sites = block_turnover(snapshot), FreeSites(evidence)
    several = len(snapshot.processes) > 1
    if snapshot.selection.is_sampled:
        totals = _drawn_totals(snapshot)
        return [_estimated(entry, totals, sites, several, snapshot.selection) for entry in merged]
    return [_over_time(entry, turnovers, sites, several) for entry in merged]


def inherited_allocations(evidence: Evidence, *, sums: bool = False) -> list[Leak]:
    """Merge the copies that forked processes hold of their parents' blocks. `sums`: of many have one entry for each
    process, without a stack."""
    inherited = evidence.snapshot.inherited
    if sums and len(inherited) >= _MANY:
        return _sums(inherited, evidence.snapshot.selection)
    found = reached(evidence.snapshot, KIND_ALLOCATION, inherited)
    blocks = blocks_of(inherited, "address", "size", _KIND, evidence, found)
    return [entry.leak() for entry in merge_blocks(blocks, _KIND, evidence, inherited=True)]


def _sums(inherited: Records, selection: Selection) -> list[Leak]:
    groups = group_rows(inherited["pid"], inherited["generation"])
    order, bounds = sorted_runs(groups.label, len(groups))
    whole = estimated(inherited["size"][order].astype(np.uint64), bounds[:-1], selection)
    first = inherited[groups.first]
    each = zip(
        first["pid"].tolist(), first["generation"].tolist(), whole.counts.tolist(), whole.bytes.tolist(), strict=True
    )
    return [
        Leak(
            "", _KIND, None, pid, INHERITED, count, size, (), stack_complete=True, stack_status="complete",
            sample=whole.sample(slice(number, number + 1)), generation=generation,
        )
        for number, (pid, generation, count, size) in enumerate(each)
    ]  # fmt: skip


def _over_time(entry: MergedBlocks, turnovers: Turnovers, sites: FreeSites, several: bool) -> Leak:
    turnover = turnovers.of(entry.stacks)
    made = freed = None
    if turnover is not None and several and turnover.made - turnover.freed != entry.count:
        turnover = turnovers.without_peak(entry.stacks)  # totals are by stack, not by process: not this process's alone
    elif turnover is not None:
        made, freed = turnover.made, turnover.freed
    return entry.leak(
        freed_at=sites.of(entry.stacks), made=made, freed=freed, trend=trend(entry.births, turnover)
    )


_Totals = tuple[int, int, int, int]


def _drawn_totals(snapshot: Snapshot) -> dict[int, _Totals]:
    """Return (made, bytes made, freed, bytes freed) of the blocks that were drawn, by stack."""
    columns = (snapshot.totals[name].tolist() for name in ("stack", "made", "made_bytes", "freed", "freed_bytes"))
    return {row[0]: row[1:] for row in zip(*columns, strict=True)}


def _estimated(
    entry: MergedBlocks, totals: dict[int, _Totals], sites: FreeSites, several: bool, selection: Selection
) -> Leak:
    """Estimate what was made and freed; what was drawn by chance has no course over time."""
    make = partial(entry.leak, freed_at=sites.of(entry.stacks))
    known = [totals[stack] for stack in entry.stacks if stack in totals]
    if len(known) < len(entry.stacks):
        return make()
    are_all = sum(each[0] - each[2] for each in known) == entry.kept
    if several and not are_all:
        return make()  # totals are by stack, not by process: these are not this process's alone
    freed = sum(alike(each[2], each[3], selection)[0] for each in known)
    made = freed + entry.count if are_all else sum(alike(each[0], each[1], selection)[0] for each in known)
    return make(made=made, freed=freed)
