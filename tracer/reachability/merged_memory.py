"""Memory of a process that ran on while it was read several times: what pointed somewhere at any time points there.

A pointer that moves while a pass goes through the memory may be where the pass is not. The rule is that of Linux's
kmemleak (Documentation/dev-tools/kmemleak.rst): what no pass finds is lost, unless something in it changed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tracer.model.distinct_values import distinct
from tracer.model.snapshot import Records
from tracer.reachability.memory import REGION, WORD, Memory, RegionKind, regions_of


class MergedMemory:
    """Adds up passes over one address space; `memory` has the words of all, and the rest of the last."""

    def __init__(self) -> None:
        self.passes = 0
        self._words = np.zeros(0, WORD)
        self._changed = np.zeros(0, np.uint64)
        self._latest = Memory()
        self._layouts: list[Memory] = []
        """One for each set of regions that there was."""

    def add(self, memory: Memory) -> None:
        """Add a pass."""
        words = _sorted(memory.words)
        if not self.passes:
            self._words = words
        elif not np.array_equal(words, self._words):
            both = _sorted(np.concatenate([self._words, words]))
            is_again = _equals_the_one_before(both)
            alone = ~is_again & ~np.append(is_again[1:], False)
            self._changed = distinct(np.append(self._changed, both["at"][alone]))
            self._words = both[~is_again]
        if not any(np.array_equal(one.regions, memory.regions) for one in self._layouts):
            self._layouts.append(Memory(regions=memory.regions))
        self._latest = _with_older(memory, self._latest)
        self.passes += 1

    @property
    def memory(self) -> Memory:
        """What all passes found."""
        return replace(
            self._latest, words=self._words, regions=_merged_regions(self._layouts), changed=self._changed
        )


def _sorted(words: Records) -> Records:
    """Return the distinct words of a pass by place, or those of two, by place and value."""
    found: Records = words[np.lexsort((words["value"], words["at"]))]
    return found


def _equals_the_one_before(words: Records) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    equal = np.zeros(len(words), np.bool_)
    equal[1:] = (words["at"][1:] == words["at"][:-1]) & (words["value"][1:] == words["value"][:-1])
    return equal


def _with_older(memory: Memory, before: Memory) -> Memory:
    """Return a pass with what the one before says of containers and classes where this one says nothing."""
    heads = np.concatenate([memory.heads, before.heads])
    places, tables = np.append(memory.vtables, before.vtables), np.append(memory.tables, before.tables)
    _, chosen = np.unique(heads["address"], return_index=True)
    distinct, first = np.unique(places, return_index=True)
    return replace(memory, heads=heads[chosen], vtables=distinct, tables=tables[first])


def _merged_regions(layouts: list[Memory]) -> Records:
    """Return regions for all passes: where they differ, one that holds comes before an allocator's."""
    if len(layouts) == 1:
        return layouts[0].regions
    edges = distinct(np.concatenate([part for one in layouts for part in (one.regions["start"], one.regions["end"])]))
    kind = np.zeros(len(edges), np.uint64)
    for one in layouts:
        found = regions_of(one, edges)
        takes = (kind == 0) | ((kind == RegionKind.ALLOCATOR) & (found != 0))
        kind[takes] = found[takes]
    inside = np.flatnonzero(kind[:-1])
    rows = np.zeros(len(inside), REGION)
    rows["start"], rows["end"], rows["kind"] = edges[inside], edges[inside + 1], kind[inside]
    return rows
