"""Live allocations, merged by where they were made."""

from __future__ import annotations

from dataclasses import replace

from tracer.analysis.blocks import MergedBlocks, blocks_of, merge_blocks
from tracer.analysis.evidence import Evidence
from tracer.model.findings import Leak
from tracer.model.snapshot import Snapshot

_KIND = "allocation"


def allocation_leaks(evidence: Evidence) -> list[Leak]:
    """Merge the live allocations; add what was made and freed at the same stacks."""
    snapshot = evidence.snapshot
    merged = merge_blocks(blocks_of(snapshot.allocations, "address", "size"), _KIND, evidence)
    turnover = _turnover(snapshot)
    several = len(snapshot.processes) > 1
    return [_with_turnover(entry, turnover, several) for entry in merged]


def inherited_allocations(evidence: Evidence) -> list[Leak]:
    """Merge the copies that forked processes hold of their parents' blocks."""
    blocks = blocks_of(evidence.snapshot.inherited, "address", "size")
    return [entry.leak for entry in merge_blocks(blocks, _KIND, evidence, inherited=True)]


def _turnover(snapshot: Snapshot) -> dict[int, tuple[int, int]]:
    columns = (snapshot.totals[name].tolist() for name in ("stack", "made", "freed"))
    return {stack: (made, freed) for stack, made, freed in zip(*columns, strict=True)}


def _with_turnover(entry: MergedBlocks, turnover: dict[int, tuple[int, int]], several: bool) -> Leak:
    known = [turnover[stack] for stack in entry.stacks if stack in turnover]
    if len(known) < len(entry.stacks):
        return entry.leak
    made, freed = sum(m for m, _ in known), sum(f for _, f in known)
    if several and made - freed != entry.leak.count:
        return entry.leak  # totals are by stack, not by process: these are not this process's alone
    return replace(entry.leak, made=made, freed=freed)
