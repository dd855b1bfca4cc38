"""Holders of what is outstanding: pointers backwards, from what they point at to what they stand in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace

import numpy as np
import numpy.typing as npt

from tracer.late_dataclasses import dataclass
from tracer.model.distinct_values import first_rows, is_any_of
from tracer.model.holders import KIND_GONE, SEVERAL, HolderKind
from tracer.model.reachability import KIND_ALLOCATION, KIND_REFERENCE, Reach
from tracer.model.snapshot import Records
from tracer.reachability.block_table import BlockTable, Indices
from tracer.reachability.classes import Classes
from tracer.reachability.edges import AT_ONCE, Edges, Flags, FreeWords, edges_and_traces
from tracer.reachability.holder_rows import (
    MOST_OF_TARGET,
    MOST_ROWS,
    NO_ROWS,
    HolderRows,
    joined,
    mixed,
    others,
    records_of,
    summed,
)
from tracer.reachability.keepers import keepers, loose
from tracer.reachability.memory import Addresses, Memory, RegionKind, picked, regions_of, spans_of
from tracer.reachability.thread_storage import ThreadStorage

MODULE = np.dtype(
    [("start", "<u8"), ("end", "<u8"), ("bias", "<u8"), ("binary", "<u8"), ("storage", "<u8"), ("is_program", "?")]
)
"""A binary as it lies in memory, with what follows it (.bss). `storage`: bytes of its thread-local segment; the
program's is right below the thread pointer (Drepper, "ELF Handling For Thread-Local Storage", variant II)."""
FREED = np.dtype([("address", "<u8"), ("size", "<u8"), ("stack", "<u8"), ("released", "<u8"), ("time_ns", "<u8")])
GONE = np.dtype([("target", "<u8"), ("address", "<u8"), ("size", "<u8")])
"""A counted object whose block was freed, and that block."""
FRAME_SPAN = np.dtype([("start", "<u8"), ("end", "<u8"), ("stack", "<u8")])
"""A frame of a thread that ran on, and the id of the stack from it on."""
_OBJECTS_OF_A_KIND, _MOST_OBJECTS = 64, 20_000
_MOST_TRACES = 4096
_BINARY_SHIFT = np.uint64(48)
_LINK_MASK = np.uint64((1 << 47) - 1)
_REGISTER_KINDS = (RegionKind.REGISTER, RegionKind.ENDING_REGISTER)
_STACK_KINDS = (RegionKind.STACK, RegionKind.ENDING_STACK)


@dataclass(frozen=True)
class Surroundings:
    """What tells words apart that are in no block: MODULEs by start, FREED and GONE blocks, FRAME_SPANs by start.

    `uses_slack`: whether the program may use what glibc rounds sizes up to.
    """

    modules: Records
    freed: Records
    gone: Records
    frames: Records = field(default_factory=lambda: np.zeros(0, FRAME_SPAN))
    uses_slack: bool = True


class Holders:
    """Of one address space. `blocks`: ALLOCATION_RECORDs that `table` was made of, those of a parent from `own` on;
    `mapped`: MAPPED_RECORDs."""

    def __init__(
        self, memory: Memory, table: BlockTable, blocks: Records, objects: Records, mapped: Records,
        around: Surroundings,
    ) -> None:  # fmt: skip
        self._memory, self._table, self._around = memory, table, around
        self._site, self._stack = blocks["site"][table.order], blocks["stack"][table.order]
        self._objects = objects[np.argsort(objects["address"], kind="stable")]
        self._counters = self._objects["address"].astype(np.uint64)
        self._counter_block = table.targets(self._counters)
        """The block that each object's counter is in, -1: none."""
        self._mapped = mapped[np.argsort(mapped["start"], kind="stable")]
        self._storage = ThreadStorage(memory, int(around.modules["storage"].sum()))
        self._objects_of: Indices | None = None
        """Of the edges, once it was asked for."""
        self._type, self._virtual = self._types(), self._tables()

    def records(self, space: tuple[int, int], edges: Edges, traces: Edges, classes: Classes, own: int) -> Records:
        """Return who holds each group of blocks, each of some objects, and each object whose memory is gone."""
        label, first = self._groups(classes, own)
        of_blocks = self._summed(edges, label)
        lost = is_any_of(classes.reach, (Reach.LOST, Reach.INDIRECT)) & (label >= 0)
        left = traces[np.flatnonzero(lost[traces.target])[:_MOST_TRACES]]
        parts = [of_blocks, self._trace_rows(left, label[left.target])]
        own_blocks = np.flatnonzero(label >= 0)
        differs = self._sizes[own_blocks] != self._sizes[first][label[own_blocks]]
        is_uniform = np.bincount(label[own_blocks], differs, len(first)) == 0
        target, size = [self._table.start[first]], [np.where(is_uniform, self._sizes[first], 0)]
        kinds = [np.full(len(first), KIND_ALLOCATION)]
        for found in (self._of_objects(edges, left), self._of_gone()):
            rows, targets, sizes, kind = found
            shifted = sum(map(len, target))
            parts.append(replace(rows, group=rows.group + shifted))
            target.append(targets)
            size.append(sizes)
            kinds.append(np.full(len(targets), kind))
        return records_of(
            summed(joined(parts)), np.concatenate(target), np.concatenate(size), np.concatenate(kinds), space
        )

    @property
    def _sizes(self) -> Addresses:
        return self._table.size

    def counts(self, edges: Edges) -> npt.NDArray[np.int64]:
        """Return how many words point at each object, in the order of their counters; -1 for those in no block."""
        place = self._pointed_at(edges)
        return np.where(self._counter_block >= 0, np.bincount(place[place >= 0], minlength=len(self._objects)), -1)

    def keepers(self, edges: Edges, holds: Flags) -> Addresses:
        """Return the address of the counted object by which alone each object lives, 0: none. `holds`: of each block
        whether it is held whatever points at it."""
        place, block = self._pointed_at(edges), self._counter_block
        words = place[(place >= 0) & ~loose(edges)]
        lives = self._objects["count"] > np.bincount(words, minlength=len(self._objects))
        inside = np.flatnonzero(block >= 0)
        has_object, has_living = (np.zeros(len(self._table), np.bool_) for _ in range(2))
        speaker = np.zeros(len(self._table), np.int64)
        has_object[block[inside]] = True
        has_living[block[inside[lives[inside]]]] = True
        for rows in (inside, inside[lives[inside]]):  # one that lives by itself speaks for its block
            speaker[block[rows[::-1]]] = rows[::-1]
        keeper = keepers(edges, has_object, has_living, holds)[block[inside]]
        found = np.zeros(len(self._objects), np.uint64)
        kept = keeper >= 0
        found[inside[kept]] = self._counters[speaker[keeper[kept]]]
        return found

    def _pointed_at(self, edges: Edges) -> Indices:
        if self._objects_of is None:
            self._objects_of = self._object_of(edges)
        return self._objects_of

    @property
    def objects(self) -> Records:
        return self._objects

    def _groups(self, classes: Classes, own: int) -> tuple[Indices, Indices]:
        """Number the blocks by birth, class and the birth of their owner; -1 for those of a parent. Return the numbers,
        and the first block of each."""
        is_own = self._table.order < own
        owner = np.searchsorted(self._table.start, classes.owner)
        owner = np.where(classes.owner > 0, np.minimum(owner, max(len(self._table) - 1, 0)), -1)
        births = mixed(self._site, self._stack)
        above = np.where(owner >= 0, births[owner], np.uint64(0)) if len(births) else births
        hashes = mixed(births, classes.reach, above)
        rows = np.flatnonzero(is_own)
        _, first, numbers = np.unique(hashes[rows], return_index=True, return_inverse=True)
        label = np.full(len(self._table), -1, np.int64)
        label[rows] = numbers
        return label, rows[first]

    def _types(self) -> Addresses:
        """Return the type of the counted object that each block is, 0: none."""
        type_ = np.zeros(len(self._table), np.uint64)
        block = self._counter_block
        inside = np.flatnonzero(block >= 0)[::-1]  # the first of several stays
        type_[block[inside]] = self._objects["type"][inside]
        return type_

    def _tables(self) -> Addresses:
        """Return what table of virtual functions each block begins with, 0: none."""
        places, tables = self._memory.vtables, self._memory.tables
        if len(places) == 0 or len(self._table) == 0:
            return np.zeros(len(self._table), np.uint64)
        index = np.minimum(np.searchsorted(places, self._table.start), len(places) - 1)
        begins = places[index] == self._table.start
        return np.where(begins, self._link(tables[index]), np.uint64(0))

    def _link(self, addresses: Addresses) -> Addresses:
        """Return binary << 48 | link address, 0 where no binary is."""
        modules = self._around.modules
        module = spans_of(modules["start"], modules["end"], addresses)
        link = (addresses - picked(modules["bias"], module)) & _LINK_MASK
        return np.where(module >= 0, picked(modules["binary"], module) << _BINARY_SHIFT | link, np.uint64(0))

    def _summed(self, edges: Edges, label: Indices) -> HolderRows:
        """Return the rows of all edges to blocks with a label, those of one birth, offset and label as one; of the
        others than the commonest of a label only that there are so many. There may be a million edges, so none has a
        row."""
        first, counts = first_rows(self._alike(edges, label))
        first, counts, rest, rest_counts = _commonest(first, counts, label[edges.target[first]])
        roots = np.flatnonzero(edges.source < 0)
        roots = roots[label[edges.target[roots]] >= 0]
        parts = [self._rows(edges[rows], label[edges.target[rows]]) for rows in (first, roots)]
        return joined([replace(parts[0], count=counts), others(rest, rest_counts), parts[1]])

    def _alike(self, edges: Edges, label: Indices) -> Iterator[tuple[Indices, Addresses]]:
        """Yield the edges from blocks to those with a label, some at a time, and a hash of what makes them alike."""
        births = mixed(self._stack, self._sizes, self._type, self._virtual)
        for at in range(0, len(edges), AT_ONCE):
            source, group = edges.source[at : at + AT_ONCE], label[edges.target[at : at + AT_ONCE]]
            chosen = np.flatnonzero((source >= 0) & (group >= 0))
            rows, source = chosen + at, source[chosen]
            offset = edges.at[rows] - self._table.start[source]
            yield rows, mixed(births[source], group[chosen], offset, edges.strong[rows])

    def _rows(self, edges: Edges, group: Indices) -> HolderRows:
        """Say of each edge what its word stands in; `interior` is that it points neither at the start nor where
        containers point."""
        if not len(edges):
            return NO_ROWS
        count, at, source = len(edges), edges.at, edges.source
        place, size, type_, table, tid = (np.zeros(count, np.uint64) for _ in range(5))
        kind, offset = np.full(count, int(HolderKind.MAPPING)), np.full(count, SEVERAL)
        inside = np.flatnonzero(source >= 0)
        holder = source[inside]
        kind[inside], place[inside] = HolderKind.BLOCK, self._stack[holder]
        offset[inside] = (at[inside] - self._table.start[holder]).astype(np.int64)
        size[inside], type_[inside], table[inside] = self._sizes[holder], self._type[holder], self._virtual[holder]
        root = np.flatnonzero(source < 0)
        kind[root], place[root], offset[root], tid[root] = self._roots(at[root], edges.kind[root])
        released = np.zeros(count, np.uint64)
        return HolderRows(
            group, kind, place, offset, size, type_, table, released, tid, (~edges.strong).astype(np.uint8),
            np.ones(count, np.int64),
        )  # fmt: skip

    def _roots(self, at: Addresses, region: npt.NDArray[np.uint8]) -> tuple[Indices, Addresses, Indices, Addresses]:
        """Return kind, place, offset and thread of words that are in no block."""
        kind, offset = np.full(len(at), int(HolderKind.MAPPING)), np.full(len(at), SEVERAL)
        place = self._mapped_at(at)
        is_global = region == RegionKind.GLOBAL
        kind[is_global], place[is_global] = HolderKind.GLOBAL, self._link(at[is_global])
        stack = is_any_of(region, _STACK_KINDS)
        register = is_any_of(region, _REGISTER_KINDS)
        kind[stack], kind[register] = HolderKind.STACK, HolderKind.REGISTER
        place[register] = 0
        place[stack], offset[stack] = self._frame_at(at[stack])
        tid = np.zeros(len(at), np.uint64)
        tid[stack | register] = self._storage.threads(at[stack | register])
        owner = self._storage.pointers(at)
        local = ~register & (owner > 0)
        kind[local], tid[local] = HolderKind.THREAD_LOCAL, 0
        place[local] = self._storage_links(at[local], owner[local])
        return kind, place, offset, tid

    def _storage_links(self, at: Addresses, pointer: Addresses) -> Addresses:
        """Return where words of thread-local storage are in the program's own segment: binary << 48 | offset."""
        program = self._around.modules[self._around.modules["is_program"] & (self._around.modules["storage"] > 0)]
        if len(program) == 0:
            return np.zeros(len(at), np.uint64)
        first = pointer - program["storage"][0]
        inside = (at >= first) & (at < pointer)
        return np.where(inside, program["binary"][0] << _BINARY_SHIFT | (at - first), np.uint64(0))

    def _frame_at(self, at: Addresses) -> tuple[Addresses, Indices]:
        """Return the stack from the frame on that each word is in, 0: none; and how far the word is from the frame's
        end, the canonical frame address."""
        frames = self._around.frames
        span = spans_of(frames["start"], frames["end"], at)
        below = at.astype(np.int64) - picked(frames["end"], span).astype(np.int64)
        return picked(frames["stack"], span), np.where(span >= 0, below, SEVERAL)

    def _mapped_at(self, at: Addresses) -> Addresses:
        """Return the stack of the call that mapped the memory at each address, 0: unknown."""
        mapped = self._mapped
        return picked(mapped["stack"], spans_of(mapped["start"], mapped["start"] + mapped["length"], at))

    def _trace_rows(self, traces: Edges, group: Indices) -> HolderRows:
        """Say of words in free memory which block they were in when it was freed last; the others say nothing."""
        if not len(traces):
            return NO_ROWS
        freed = self._around.freed
        found: list[tuple[int, int]] = []
        for row, at in enumerate(traces.at.tolist()):
            inside = np.flatnonzero((freed["address"] <= at) & (at - freed["address"] < freed["size"]))
            if len(inside):
                found.append((row, int(inside[np.argmax(freed["time_ns"][inside])])))
        rows, blocks = np.array(found, np.int64).reshape(-1, 2).T
        nothing = np.zeros(len(rows), np.uint64)
        return HolderRows(
            group[rows], np.full(len(rows), int(HolderKind.FREED_BLOCK)), freed["stack"][blocks],
            (traces.at[rows] - freed["address"][blocks]).astype(np.int64), freed["size"][blocks], nothing, nothing,
            freed["released"][blocks], nothing, np.zeros(len(rows), np.uint8), np.ones(len(rows), np.int64),
        )  # fmt: skip

    def _object_of(self, edges: Edges) -> Indices:
        """Return which counted object each edge points at, -1: none."""
        found = np.full(len(edges), -1)
        if len(self._objects):
            has_object = np.zeros(len(self._table), np.bool_)
            has_object[self._counter_block[self._counter_block >= 0]] = True
            chosen = np.flatnonzero(has_object[edges.target])
            found[chosen] = self._nearest(edges[chosen])
        return found

    def _nearest(self, edges: Edges) -> Indices:
        """Return which object each edge points at: in a block of several the last that begins at or before the
        address; in front of all the first."""
        counter, block = self._counters, self._counter_block
        own = self._objects["object"].astype(np.uint64)
        begins = np.where((own > 0) & (own < counter) & (self._table.targets(own) == block), own, counter)
        order = np.lexsort((begins, block))
        key_block, key_begin = block[order], begins[order]
        low = np.searchsorted(key_block, edges.target, side="left")
        high = np.searchsorted(key_block, edges.target, side="right")
        place = low.copy()
        for row in np.flatnonzero(high - low > 1).tolist():
            after = int(np.searchsorted(key_begin[low[row] : high[row]], edges.value[row] | np.uint64(7), side="right"))
            place[row] = low[row] + max(after - 1, 0)
        return np.where(high > low, order[np.minimum(place, len(order) - 1)], -1)

    def _of_objects(self, edges: Edges, left: Edges) -> tuple[HolderRows, Addresses, Addresses, int]:
        """Return who holds each of some objects: as many of each type, birth and count, the oldest."""
        if not len(self._objects):
            return NO_ROWS, self._counters, self._counters, KIND_REFERENCE
        objects, of, block = self._objects, self._pointed_at(edges), self._counter_block
        kinds = mixed(objects["type"], objects["stack"], objects["count"])
        order = np.lexsort((objects["time_ns"], kinds))
        rank = np.arange(len(order)) - np.searchsorted(kinds[order], kinds[order])
        chosen = np.sort(order[(rank < _OBJECTS_OF_A_KIND) & (block[order] >= 0)])[:_MOST_OBJECTS]
        number = np.full(len(objects) + 1, -1, np.int64)
        number[chosen] = np.arange(len(chosen))
        group, traced = number[of], number[self._object_of(left)]
        held, was_held = np.flatnonzero(group >= 0), np.flatnonzero(traced >= 0)
        rows = joined([self._rows(edges[held], group[held]), self._trace_rows(left[was_held], traced[was_held])])
        return rows, self._counters[chosen], self._sizes[block[chosen]], KIND_REFERENCE

    def _of_gone(self) -> tuple[HolderRows, Addresses, Addresses, int]:
        """Return who still points at counted objects whose memory was freed, unless another block is there now."""
        gone = self._around.gone
        if not len(gone):
            return NO_ROWS, _NO_ADDRESSES, _NO_ADDRESSES, KIND_GONE
        again = self._table.targets(gone["address"].astype(np.uint64)) >= 0
        gone = gone[~again]
        table = BlockTable(gone["address"].copy(), gone["size"].copy())
        if len(gone) == 0 or table.is_nested:
            return NO_ROWS, _NO_ADDRESSES, _NO_ADDRESSES, KIND_GONE
        edges, _ = edges_and_traces(self._memory, table, FreeWords(free_holds=True))
        is_heap = regions_of(self._memory, edges.at) == RegionKind.ALLOCATOR
        source = self._table.owners(edges.at, is_heap)
        itself = edges.source >= 0
        is_free = (source < 0) & is_heap
        live = replace(edges, source=source.astype(np.int32))
        alive, free = np.flatnonzero(~itself & ~is_free), np.flatnonzero(~itself & is_free)[:_MOST_TRACES]
        target = edges.target.astype(np.int64)
        rows = joined([self._rows(live[alive], target[alive]), self._trace_rows(edges[free], target[free])])
        return rows, gone["target"][table.order], gone["size"][table.order], KIND_GONE


def _commonest(first: Indices, counts: Indices, group: Indices) -> tuple[Indices, Indices, Indices, Indices]:
    """Return of each group those with the highest counts; and groups of the rest with their sums."""
    most = max(1, min(MOST_OF_TARGET, MOST_ROWS // (1 + int(group.max(initial=0)))))
    order = np.lexsort((-counts, group))
    first, counts, of = first[order], counts[order], group[order]
    is_rest = np.arange(len(of)) - np.searchsorted(of, of) >= most
    if not is_rest.any():
        return first, counts, _NO_INDICES, _NO_INDICES
    groups, label = np.unique(of[is_rest], return_inverse=True)
    return first[~is_rest], counts[~is_rest], groups, np.bincount(label, counts[is_rest]).astype(np.int64)


_NO_INDICES = np.zeros(0, np.int64)
_NO_ADDRESSES = np.zeros(0, np.uint64)
