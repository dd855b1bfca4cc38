"""Live allocations, merged by where they were made."""

from __future__ import annotations

from dataclasses import replace

from tracer.analysis.blocks import MergedBlocks, blocks_of, merge_blocks
from tracer.analysis.estimates import alike
from tracer.analysis.evidence import Evidence
from tracer.model.findings import Leak
from tracer.model.selection import Selection
from tracer.model.snapshot import Snapshot

_KIND = "allocation"


def allocation_leaks(evidence: Evidence) -> list[Leak]:
    """Merge the live allocations; add what was made and freed at the same stacks."""
    snapshot = evidence.snapshot
    merged = merge_blocks(blocks_of(snapshot.allocations, "address", "size"), _KIND, evidence)
    turnover = _turnover(snapshot)
    several = len(snapshot.processes) > 1
    return [_with_turnover(entry, turnover, several, snapshot.selection) for entry in merged]


def inherited_allocations(evidence: Evidence) -> list[Leak]:
    """Merge the copies that forked processes hold of their parents' blocks."""
    blocks = blocks_of(evidence.snapshot.inherited, "address", "size")
    return [entry.leak for entry in merge_blocks(blocks, _KIND, evidence, inherited=True)]


Turnover = tuple[int, int, int, int]


def _turnover(snapshot: Snapshot) -> dict[int, Turnover]:
    """Return (made, bytes made, freed, bytes freed) by stack, as they were kept."""
    columns = (snapshot.totals[name].tolist() for name in ("stack", "made", "made_bytes", "freed", "freed_bytes"))
    return {row[0]: row[1:] for row in zip(*columns, strict=True)}


def _with_turnover(entry: MergedBlocks, turnover: dict[int, Turnover], several: bool, selection: Selection) -> Leak:
    known = [turnover[stack] for stack in entry.stacks if stack in turnover]
    if len(known) < len(entry.stacks):
        return entry.leak
    made, freed = sum(each[0] for each in known), sum(each[2] for each in known)
    are_all = made - freed == entry.leak.kept
    if several and not are_all:
        return entry.leak  # totals are by stack, not by process: these are not this process's alone
    freed = sum(alike(each[2], each[3], selection)[0] for each in known)
    if selection.is_sampled:
        made = freed + entry.leak.count if are_all else sum(alike(each[0], each[1], selection)[0] for each in known)
    return replace(entry.leak, made=made, freed=freed)
