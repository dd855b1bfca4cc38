"""The classes of all that is outstanding in one address space, as REACH_RECORDs."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from tracer.late_dataclasses import dataclass
from tracer.model.distinct_values import is_any_of
from tracer.model.joined_rows import joined_rows
from tracer.model.operations import MemoryTrait
from tracer.model.reachability import (
    KIND_ALLOCATION,
    KIND_MAPPING,
    KIND_REFERENCE,
    REACH_RECORD,
    Reach,
    RootKind,
)
from tracer.model.snapshot import Records
from tracer.reachability.block_table import BlockTable, Indices
from tracer.reachability.classes import Classes, DescribedMemory, classify
from tracer.reachability.edges import ADDRESS_BITS, Edges, Flags, FreeWords, edges_and_traces
from tracer.reachability.heaps import with_heaps
from tracer.reachability.holders import Holders, Surroundings
from tracer.reachability.memory import ROOT_KINDS, Memory, RegionKind, regions_of, spans_of

_LAST = 255


@dataclass(frozen=True)
class Outstanding:
    """What is alive in one address space; `holds` of each block: what it points at is held; `memory`: MemoryTraits."""

    allocations: Records
    inherited: Records
    """Copies of the blocks of a parent: they hold, and are not classed."""
    objects: Records
    mapped: Records
    holds: npt.NDArray[np.bool_]
    memory: npt.NDArray[np.uint8]
    some_hides: bool = False
    """Allocators are described whose memory hides pointers."""
    heaps: Records | None = None
    """What allocators that take the place of libc's mapped, where all blocks of theirs are known."""
    has_break: bool = False
    """What brk(2) gave is theirs too."""

    @cached_property
    def blocks(self) -> Records:
        """All, those of a parent last."""
        return joined_rows([self.allocations, self.inherited]) if len(self.inherited) else self.allocations


def reach_and_holders(
    memory: Memory, alive: Outstanding, around: Surroundings, space: tuple[int, int], *, free_holds: bool,
    knows_freed: bool = False, still_held: Records | None = None,
) -> tuple[Records, Records]:
    """Return a REACH_RECORD for each allocation, counted object and mapping, but for what was made after the memory
    was read: that is held by whoever made it; and HOLDER_RECORDs of them.

    `free_holds`: what is in no block may be a block that is not known, and holds. `knows_freed`: but for what was seen
    to be freed. `still_held`: blocks (`address`, `size`) that were freed after the memory was read.
    """
    blocks = alive.blocks
    start, size = blocks["address"].astype(np.uint64), blocks["size"].astype(np.uint64)
    if alive.heaps is not None:
        memory = with_heaps(memory, alive.heaps, start, has_break=alive.has_break)
    table = BlockTable(start, size, uses_slack=around.uses_slack, is_of_glibc=alive.heaps is None)
    holds, traits = alive.holds[table.order], alive.memory[table.order]
    young = blocks["time_ns"][table.order] > memory.time_ns
    free_words = FreeWords(free_holds, around.freed if knows_freed else None, still_held)
    edges, traces = edges_and_traces(memory, table, free_words)
    in_use = np.zeros(len(table), np.bool_)
    changed = table.targets(memory.changed)
    in_use[changed[changed >= 0]] = True
    described = DescribedMemory(
        (traits & MemoryTrait.ROOT) != 0, (traits & MemoryTrait.HIDES) != 0,
        alive.some_hides and (free_holds or bool(still_held is not None and len(still_held))),
    )  # fmt: skip
    holds |= young | in_use
    classes = classify(table, edges, holds, described)
    holders = Holders(memory, table, blocks, alive.objects, alive.mapped, around)
    held_by = holders.records(space, edges, traces, classes, len(alive.allocations))
    rows = [
        _of_allocations(alive.allocations, table, classes),
        _of_objects(memory, holders, table, classes, edges, holds | described.is_root),
        _of_mappings(memory, alive.mapped, table, classes, free_words),
    ]
    return joined_rows(rows), held_by


def _rows(records: Records, address: str, kind: int) -> Records:
    rows = np.zeros(len(records), REACH_RECORD)
    rows["address"], rows["kind"] = records[address], kind
    rows["pid"], rows["generation"] = records["pid"], records["generation"]
    return rows


def _fill(rows: Records, at: npt.NDArray[np.bool_] | Indices, classes: Classes, index: Indices) -> None:
    rows["reach"][at], rows["owner"][at] = classes.reach[index], classes.owner[index]
    rows["root"][at], rows["root_kind"][at] = classes.root[index], classes.root_kind[index]


def _of_allocations(allocations: Records, table: BlockTable, classes: Classes) -> Records:
    rows = _rows(allocations, "address", KIND_ALLOCATION)
    rows["site"] = allocations["site"]
    place = np.empty(len(table), np.int64)
    place[table.order] = np.arange(len(table))
    _fill(rows, np.arange(len(rows)), classes, place[: len(rows)])
    return rows


def _of_objects(
    memory: Memory, holders: Holders, table: BlockTable, classes: Classes, edges: Edges, holds: Flags
) -> Records:  # fmt: skip
    """An object is reached as the block that its counter is in; in no block, as a word of its memory would hold.

    `holds`: of each block whether it is held whatever points at it.
    """
    objects = holders.objects
    rows = _rows(objects, "address", KIND_REFERENCE)
    if len(rows) == 0:
        return rows
    rows["holders"] = np.minimum(holders.counts(edges) + 1, 0xFFFFFFFF)
    if classes.hidden == Reach.UNKNOWN:
        rows["keeper"] = holders.keepers(edges, holds)
    counter = objects["address"].astype(np.uint64)
    block = table.targets(counter)
    inside = block >= 0
    _fill(rows, inside, classes, block[inside])
    kind = regions_of(memory, counter)
    for region, root in ROOT_KINDS.items():
        outside = ~inside & (kind == region)
        stack = region in (RegionKind.ENDING_STACK, RegionKind.ENDING_REGISTER)
        rows["reach"][outside] = Reach.STACK if stack else Reach.REACHABLE
        rows["root"][outside], rows["root_kind"][outside] = counter[outside], root
    return rows


def _of_mappings(
    memory: Memory, mapped: Records, table: BlockTable, classes: Classes, free_words: FreeWords
) -> Records:  # fmt: skip
    """A mapping is reached by any pointer into it from elsewhere; the best of those who point there decides, for all
    pieces of it and for what was put over it: who knows where one is knows where the others are."""
    rows = _rows(mapped, "start", KIND_MAPPING)
    if len(rows) == 0:
        return rows
    order = np.argsort(mapped["start"], kind="stable")
    start, end = mapped["start"][order], (mapped["start"] + mapped["length"])[order]
    whole = _wholes(mapped[order])
    best = np.full(len(rows), _LAST, np.uint8)
    value, at = memory.words["value"] & ADDRESS_BITS, memory.words["at"]
    target = spans_of(start, end, value)
    hits = np.flatnonzero(target >= 0)
    within = spans_of(start, end, at[hits])
    hits = hits[(within < 0) | (whole[within] != whole[target[hits]])]
    target, at = whole[target[hits]], at[hits]
    region = regions_of(memory, at)
    source = table.owners(at, region == RegionKind.ALLOCATOR)
    reach = np.where(source >= 0, classes.reach[source] if len(table) else 0, Reach.REACHABLE).astype(np.uint8)
    is_root, is_free = source < 0, free_words.among(at, source, region)
    reach[is_root & is_any_of(region, (RegionKind.ENDING_STACK, RegionKind.ENDING_REGISTER))] = Reach.STACK
    reach[is_free] = _LAST
    np.minimum.at(best, target, reach)
    first = np.flatnonzero(reach == best[target])[::-1]  # the last write of each target is its first word
    root, kind, owner = (np.zeros(len(rows), np.uint64) for _ in range(3))
    by_word, by_block = first[is_root[first]], first[~is_root[first]]
    root[target[by_word]], kind[target[by_word]] = at[by_word], _KIND_OF_ROOT[region[by_word]]
    root[target[by_block]], kind[target[by_block]] = classes.root[source[by_block]], classes.root_kind[source[by_block]]
    owner[target[by_block]] = _start_of_owner(table, classes, source[by_block])
    best, root, kind, owner = best[whole], root[whole], kind[whole], owner[whole]
    hidden = (best == _LAST) & (classes.hidden != Reach.UNKNOWN)
    best[hidden], kind[hidden] = classes.hidden, RootKind.HIDDEN
    is_lost = best >= Reach.LOST
    rows["reach"][order] = np.where(best == _LAST, Reach.LOST, np.where(is_lost, Reach.INDIRECT, best))
    rows["root"][order], rows["root_kind"][order] = np.where(is_lost, 0, root), np.where(is_lost, 0, kind)
    rows["owner"][order] = np.where(is_lost & (best != _LAST), owner, 0)
    return rows


def _wholes(mapped: Records) -> Indices:
    """Return a number for each piece: that of the first piece of the mapping that it was made in."""
    made_ns = np.where(mapped["reserved_ns"] != 0, mapped["reserved_ns"], mapped["time_ns"])
    _, first, number = np.unique(made_ns, return_index=True, return_inverse=True)
    return first[number]


_KIND_OF_ROOT = np.full(256, RootKind.MAPPING, np.uint64)
"""The kind of the root that a word is, by the kind of its region: what may be a block that is not known holds as a
mapping of unknown making does."""
_KIND_OF_ROOT[list(map(int, ROOT_KINDS))] = list(map(int, ROOT_KINDS.values()))


def _start_of_owner(table: BlockTable, classes: Classes, source: Indices) -> npt.NDArray[np.uint64]:
    if len(table) == 0:
        return np.zeros(len(source), np.uint64)
    owner: npt.NDArray[np.uint64] = np.where(classes.owner[source] != 0, classes.owner[source], table.start[source])
    return owner
