"""Memory that the target mapped itself, merged by where."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracer.analysis.blocks import blocks_of, merge_blocks
from tracer.analysis.evidence import Evidence
from tracer.analysis.trends import trend
from tracer.model.findings import Leak
from tracer.model.records import MappedFlag


def mapping_leaks(evidence: Evidence) -> list[Leak]:
    """Merge the live pieces of mmap and mremap; a piece counts as one block. What a forked process holds of its
    parent's is told apart.

    What was unmapped is not known by stack, so that no word can rest on it.
    """
    records = evidence.snapshot.mapped
    inherited = (records["flags"] & np.uint32(MappedFlag.INHERITED)) != 0
    return [*_merged(~inherited, evidence), *_merged(inherited, evidence, inherited=True)]


def _merged(chosen: npt.NDArray[np.bool_], evidence: Evidence, *, inherited: bool = False) -> list[Leak]:
    found = evidence.pieces_reached[chosen]
    blocks = blocks_of(evidence.snapshot.mapped[chosen], "start", "length", "mapping", evidence, found)
    merged = merge_blocks(blocks, "mapping", evidence, inherited=inherited)
    return [entry.leak(trend=trend(entry.births, None)) for entry in merged]
