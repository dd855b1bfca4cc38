"""Memory that the target mapped itself, merged by where."""

from __future__ import annotations

from dataclasses import replace

from tracer.analysis.blocks import blocks_of, merge_blocks
from tracer.analysis.evidence import Evidence
from tracer.analysis.trends import trend
from tracer.model.findings import Leak


def mapping_leaks(evidence: Evidence) -> list[Leak]:
    """Merge the live pieces of mmap and mremap; a piece counts as one block.

    What was unmapped is not known by stack, so that no word can rest on it.
    """
    blocks = blocks_of(evidence.snapshot.mapped, "start", "length")
    merged = merge_blocks(blocks, "mapping", evidence)
    return [replace(entry.leak, trend=trend(entry.births, None)) for entry in merged]
