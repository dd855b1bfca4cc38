"""Blocks that forked children hold as copies of their parent's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from graphlib import TopologicalSorter

import numpy as np
import numpy.typing as npt

from tracer.model.addresses import Space, space_number, space_numbers
from tracer.model.distinct_values import distinct
from tracer.model.records import ALLOCATION_RECORD, KEY
from tracer.model.snapshot import Process, Records

GHOST_RECORD = np.dtype([*ALLOCATION_RECORD.descr, ("freed_ns", "<u8")])
"""A block that its own process freed, with the time: children forked before that hold a copy."""
FREE_RECORD = np.dtype([*KEY.descr, ("time_ns", "<u8")])
"""A free of an address that the process had not allocated itself."""

_NEVER = 2**64 - 1


def inherited_allocations(
    live: Records, ghosts: Records, children: Sequence[Process], frees: Records
) -> Records:
    """Return the copies that the forked `children` still held at their end, as ALLOCATION_RECORDs keyed by the child.

    A child forked at T (its `started_ns`) begins with its parent's own blocks made before T and not freed
    before T, and with what the parent itself had inherited and not freed before T. What the child freed
    is gone, and all of it is once the child ended by exec; the children that it forked before keep theirs.

    `live`: ALLOCATION_RECORDs outstanding at the end, of all processes. `ghosts`: GHOST_RECORDs. `frees`:
    FREE_RECORDs. A process whose `forked_from` is None inherits nothing; a parent that is not among
    `children` has blocks of its own only.
    """
    parts = [blocks for _, blocks in inherited_by_child(live, ghosts, children, frees)]
    return np.concatenate([np.zeros(0, dtype=ALLOCATION_RECORD), *parts])


def inherited_by_child(
    live: Records, ghosts: Records, children: Sequence[Process], frees: Records
) -> Iterator[tuple[Process, Records]]:
    """Yield each child with its part of `inherited_allocations`: one at a time, where all would not fit."""
    processes = {child.space: child for child in children}
    parents = {space: child.forked_from for space, child in processes.items() if child.forked_from}
    if not parents:
        return
    own, freed = _ByProcess(_with_freed(live, ghosts)), _ByProcess(frees)
    waiting = _forks_of(parents)
    held: dict[Space, Records] = {}
    order = TopologicalSorter({space: [parent] for space, parent in parents.items()}).static_order()
    for space in order:
        parent = parents.get(space)
        if parent is None:
            continue
        blocks = _copied(own.of(parent), held.get(parent), processes[space])
        blocks["freed_ns"] = _first_frees(blocks, freed.of(space))
        waiting[parent] -= 1
        if not waiting[parent]:
            held.pop(parent, None)
        if waiting.get(space):
            held[space] = blocks
        if not processes[space].by_exec:
            yield processes[space], _without_freed(blocks[blocks["freed_ns"] == _NEVER])


class _ByProcess:
    """Records with a key, found by (pid, generation)."""

    def __init__(self, records: Records) -> None:
        self._records = records.take(np.lexsort([records["generation"], records["pid"]]))
        self._spaces = space_numbers(self._records)

    def of(self, space: Space) -> Records:
        wanted = np.uint64(space_number(space))
        first, after = (int(np.searchsorted(self._spaces, wanted, side)) for side in ("left", "right"))
        return self._records[first:after]


def _packed(high: npt.NDArray[np.integer], low: npt.NDArray[np.integer]) -> npt.NDArray[np.uint64]:
    return high.astype(np.uint64) << np.uint64(16) | low.astype(np.uint64)


def _with_freed(live: Records, ghosts: Records) -> Records:
    blocks = np.zeros(len(live) + len(ghosts), dtype=GHOST_RECORD)
    for name in ALLOCATION_RECORD.names or ():
        blocks[name] = np.concatenate([live[name], ghosts[name]])
    blocks["freed_ns"][: len(live)] = _NEVER
    blocks["freed_ns"][len(live) :] = ghosts["freed_ns"]
    return blocks


def _without_freed(blocks: Records) -> Records:
    records = np.zeros(len(blocks), dtype=ALLOCATION_RECORD)
    for name in ALLOCATION_RECORD.names or ():
        records[name] = blocks[name]
    return records


def _forks_of(parents: dict[Space, Space]) -> dict[Space, int]:
    """Return how many children each parent has."""
    counts: dict[Space, int] = {}
    for parent in parents.values():
        counts[parent] = counts.get(parent, 0) + 1
    return counts


def _copied(own: Records, inherited: Records | None, child: Process) -> Records:
    """Return what the parent held when it forked `child`, keyed by the child."""
    forked_ns = np.uint64(child.started_ns)
    parts = [own.take(np.flatnonzero((own["time_ns"] < forked_ns) & (own["freed_ns"] >= forked_ns)))]
    if inherited is not None:
        parts.append(inherited.take(np.flatnonzero(inherited["freed_ns"] >= forked_ns)))
    blocks = np.concatenate(parts)
    blocks["pid"], blocks["generation"] = child.space
    return blocks


def _first_frees(blocks: Records, frees: Records) -> npt.NDArray[np.uint64]:
    """Return per block when an address of its group was first freed, or _NEVER."""
    times = np.full(len(blocks), _NEVER, dtype=np.uint64)
    if len(blocks) == 0 or len(frees) == 0:
        return times
    addresses = distinct(frees["address"])
    keys = _packed(np.searchsorted(addresses, frees["address"]), frees["group"])
    order = np.lexsort([frees["time_ns"], keys])
    keys, freed_ns = keys[order], frees["time_ns"][order]
    nearest = np.minimum(np.searchsorted(addresses, blocks["address"]), len(addresses) - 1)
    wanted = _packed(nearest, blocks["group"])
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    found = (addresses[nearest] == blocks["address"]) & (keys[place] == wanted)
    times[found] = freed_ns[place[found]]
    return times
