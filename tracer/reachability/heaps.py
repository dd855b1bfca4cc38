"""Memory of allocators that take the place of libc's: mapped, from brk(2), and thread-local."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tracer.model.distinct_values import distinct, is_in
from tracer.model.snapshot import Records
from tracer.reachability.memory import REGION, Addresses, Memory, RegionKind, regions_of, spans_of
from tracer.reachability.thread_storage import thread_pointers


def with_heaps(memory: Memory, heaps: Records, blocks: Addresses, *, has_break: bool) -> Memory:
    """Return the memory with the regions that are an allocator's besides: of these MAPPED_RECORDs, of its thread-local
    storage, and, with `has_break`, of brk(2) where one of the blocks lies, by their starts."""
    starts, ends = heaps["start"], heaps["start"] + heaps["length"]
    local, behind = _storage(memory)
    edges = distinct(np.concatenate([memory.regions["start"], memory.regions["end"], starts, ends, local, behind]))
    if len(edges) == 0:
        return memory
    rows = np.zeros(len(edges) - 1, REGION)
    rows["start"], rows["end"] = edges[:-1], edges[1:]
    rows["kind"] = regions_of(memory, rows["start"])
    order = np.argsort(starts, kind="stable")
    is_mapped = spans_of(starts[order], ends[order], rows["start"]) >= 0
    rows["kind"][is_mapped & (rows["kind"] == RegionKind.MAPPING)] = RegionKind.ALLOCATOR
    is_local = spans_of(local, behind, rows["start"]) >= 0
    rows["kind"][is_local & (rows["kind"] != 0)] = RegionKind.ALLOCATOR
    if has_break:
        is_used = is_in(np.arange(len(rows)), spans_of(rows["start"], rows["end"], blocks))
        rows["kind"][is_used & (rows["kind"] == RegionKind.BREAK)] = RegionKind.ALLOCATOR
    return replace(memory, regions=rows[rows["kind"] != 0])


def _storage(memory: Memory) -> tuple[Addresses, Addresses]:
    """Return where the allocators' thread-local storage is in all threads: starts, ascending, and ends."""
    if len(memory.allocator_storage) == 0:
        return np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    pointers = thread_pointers(memory)
    spans = [(pointers + first.astype(np.uint64), size) for first, size in memory.allocator_storage]
    starts = np.concatenate([start for start, _ in spans])
    ends = np.concatenate([start + size for start, size in spans])
    order = np.argsort(starts)
    return starts[order], ends[order]
