"""Sum of the memory that the target mapped itself."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.model.findings import Findings


@dataclass(frozen=True)
class MappedTotals:
    count: int
    bytes: int


def mapped_totals(findings: Findings) -> MappedTotals:
    """Sum the entries of kind "mapping", suppressed ones too, as the totals of allocations do."""
    entries = [leak for leak in (*findings.leaks, *findings.suppressed) if leak.kind == "mapping"]
    return MappedTotals(sum(leak.count for leak in entries), sum(leak.bytes or 0 for leak in entries))
