"""Freed blocks, by where they were made."""

from __future__ import annotations

from tracer.analysis.estimates import alike
from tracer.analysis.evidence import Evidence
from tracer.model.findings import FrameList, FreedAt


def freed_by_stack(evidence: Evidence) -> tuple[FreedAt, ...]:
    """Return one entry per symbolized stack of which blocks were freed, most bytes first; estimated where sampled."""
    totals = evidence.snapshot.totals
    sums: dict[FrameList, tuple[int, int]] = {}
    columns = (totals[name].tolist() for name in ("stack", "site", "freed", "freed_bytes"))
    for stack, site, count, size in zip(*columns, strict=True):
        if count:
            frames = evidence.makers.whole(evidence.stacks.get(stack).frames, site)
            count, size = alike(count, size, evidence.snapshot.selection)
            before = sums.get(frames, (0, 0))
            sums[frames] = before[0] + count, before[1] + size
    ranked = sorted(sums.items(), key=lambda item: (-item[1][1], -item[1][0]))
    return tuple(FreedAt(frames, count, size) for frames, (count, size) in ranked)
