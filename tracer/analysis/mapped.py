"""Memory that the target mapped itself, merged by where."""

from __future__ import annotations

from tracer.analysis.blocks import blocks_of, merge_blocks
from tracer.analysis.evidence import Evidence
from tracer.model.findings import Leak


def mapping_leaks(evidence: Evidence) -> list[Leak]:
    """Merge the live pieces of mmap and mremap; a piece counts as one block."""
    blocks = blocks_of(evidence.snapshot.mapped, "start", "length")
    return [entry.leak for entry in merge_blocks(blocks, "mapping", evidence)]
