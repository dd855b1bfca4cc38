"""Live allocations, merged by where they were made."""

from __future__ import annotations

from dataclasses import replace

from tracer.analysis.blocks import MergedBlocks, blocks_of, merge_blocks
from tracer.analysis.evidence import Evidence
from tracer.analysis.free_sites import FreeSites
from tracer.analysis.trends import trend
from tracer.analysis.turnover import TurnoverBook, block_turnover
from tracer.model.findings import Leak

_KIND = "allocation"


def allocation_leaks(evidence: Evidence) -> list[Leak]:
    """Merge the live allocations; add what was made and freed at the same stacks."""
    snapshot = evidence.snapshot
    merged = merge_blocks(blocks_of(snapshot.allocations, "address", "size"), _KIND, evidence)
    book, sites = block_turnover(snapshot), FreeSites(evidence)
    several = len(snapshot.processes) > 1
    return [_over_time(entry, book, sites, several) for entry in merged]


def inherited_allocations(evidence: Evidence) -> list[Leak]:
    """Merge the copies that forked processes hold of their parents' blocks."""
    blocks = blocks_of(evidence.snapshot.inherited, "address", "size")
    return [entry.leak for entry in merge_blocks(blocks, _KIND, evidence, inherited=True)]


def _over_time(entry: MergedBlocks, book: TurnoverBook, sites: FreeSites, several: bool) -> Leak:
    turnover = book.of(entry.stacks)
    leak = replace(entry.leak, freed_at=sites.of(entry.stacks))
    if turnover is not None and several and turnover.made - turnover.freed != leak.count:
        turnover = replace(turnover, peak=None)  # totals are by stack, not by process: not this process's alone
    elif turnover is not None:
        leak = replace(leak, made=turnover.made, freed=turnover.freed)
    return replace(leak, trend=trend(entry.births, turnover))
