"""Sum of the memory that the target mapped itself."""

from __future__ import annotations

from tracer.late_dataclasses import dataclass
from tracer.model.findings import Findings


@dataclass(frozen=True)
class MappedTotals:
    count: int
    bytes: int


def mapped_totals(findings: Findings) -> MappedTotals:
    """Sum the entries of kind "mapping", as the totals of allocations do: suppressed ones too, inherited ones not."""
    entries = [
        leak for leak in (*findings.leaks, *findings.suppressed)
        if leak.kind == "mapping" and leak.state != "inherited"
    ]  # fmt: skip
    return MappedTotals(sum(leak.count for leak in entries), sum(leak.bytes or 0 for leak in entries))
