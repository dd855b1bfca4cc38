"""Free sites of blocks, by where these were made."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache

import numpy as np

from tracer.analysis.evidence import Evidence
from tracer.analysis.stacks import Lines
from tracer.model.findings import FrameList, StackCount
from tracer.model.records import Given

_NOT_ITS_END = np.uint64(Given.REALLOC | Given.INHERITED)
"""The block went on elsewhere; it was a child's copy of it."""


class FreeSites:
    """The frees that the kernel side looked at: some of each allocation stack's."""

    def __init__(self, evidence: Evidence) -> None:
        self._table = evidence.stacks
        self._by_stack: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        rows = evidence.snapshot.free_sites
        rows = rows[rows["given"] & _NOT_ITS_END == 0]
        for made, freed, count in zip(*(rows[name].tolist() for name in ("made", "freed", "count")), strict=True):
            self._by_stack[made].append((freed, count))

        self.of = cache(self._of)
        """Return where blocks of these stacks were freed, most first; calls from one line are one."""

    def _of(self, stacks: tuple[int, ...]) -> tuple[StackCount, ...]:
        if not any(stack in self._by_stack for stack in stacks):
            return ()
        counts: Counter[Lines] = Counter()
        frames: dict[Lines, FrameList] = {}
        for stack in stacks:
            for freed, count in self._by_stack.get(stack, ()):
                lines = self._table.lines(freed)
                counts[lines] += count
                frames.setdefault(lines, self._table.get(freed).frames)
        ranked = sorted(counts, key=lambda lines: (-counts[lines], lines))
        return tuple(StackCount(frames[lines], counts[lines]) for lines in ranked)
