"""Outstanding blocks, objects and mappings of one address space, as reachability takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

import numpy as np
import numpy.typing as npt

from tracer.late_dataclasses import dataclass
from tracer.late_patterns import late_pattern
from tracer.model.addresses import Space, space_number, space_numbers
from tracer.model.distinct_values import begins_of, is_any_of
from tracer.model.operations import MemoryTrait
from tracer.model.records import FRAME_BINARY_SHIFT
from tracer.model.snapshot import Records, Snapshot
from tracer.reachability.reach_records import Outstanding

_PAGE, _ONE = np.uint64(4096), np.uint64(1)
_LOADER = late_pattern(r"ld-linux|ld-musl|ld-\d")


class RowsBySpace:
    """Rows of all address spaces, in order by the one that they are of: there may be thousands of either."""

    def __init__(self, rows: Records) -> None:
        self._rows = rows
        key = space_numbers(rows)
        self._order = np.argsort(key, kind="stable")
        ordered = key[self._order]
        begins = begins_of(ordered)
        ends = np.append(begins[1:], len(rows))[: len(begins)]
        spans = zip(begins.tolist(), ends.tolist(), strict=True)
        self._spans = dict(zip(ordered[begins].tolist(), spans, strict=True))

    def of(self, space: Space) -> Records:
        """Return the rows of one, in the order in which they were given: all as they are where there is no other."""
        begin, end = self._spans.get(space_number(space), (0, 0))
        return self._rows if end - begin == len(self._rows) else self._rows[self._order[begin:end]]


def rows_of(rows: Records, space: Space) -> Records:
    """Return those rows that are of one address space: all as they are where there is no other."""
    is_of_space = (rows["pid"] == space[0]) & (rows["generation"] == space[1])
    of_space: Records = rows if is_of_space.all() else rows[is_of_space]
    return of_space


@dataclass(frozen=True)
class Heaps:
    """What allocators that take the place of libc's have, in all address spaces; all blocks of theirs are known."""

    mapped: Records
    has_break: bool
    """What brk(2) gave is theirs too, where a block lies in it."""


class OutstandingTable:
    """What is outstanding in all address spaces of a snapshot."""

    def __init__(self, snapshot: Snapshot, heaps: Heaps | None = None) -> None:
        self._snapshot = snapshot
        self._heaps = RowsBySpace(heaps.mapped) if heaps is not None else None
        self._has_break = heaps is not None and heaps.has_break
        self._loaders = {b.id for b in snapshot.binaries if _LOADER.match(PurePath(b.path).name)}
        self._allocations, self._inherited, self._objects, self._mapped = map(
            RowsBySpace, (snapshot.allocations, snapshot.inherited, snapshot.objects, snapshot.mapped)
        )
        self._some_hides = any(site.memory & MemoryTrait.HIDES for site in snapshot.sites)
        self._traits = {index: site.memory for index, site in enumerate(snapshot.sites) if site.memory}
        self._rounding = [index for index, site in enumerate(snapshot.sites) if site.function == "pvalloc"]

    def of(self, space: Space) -> Outstanding:
        """Return what is alive in a space; blocks that the dynamic loader made hold by themselves."""
        snapshot = self._snapshot
        allocations, inherited = (
            _with_whole_pages(self._rounding, rows.of(space)) for rows in (self._allocations, self._inherited)
        )
        stacks, of = np.unique(np.concatenate([allocations["stack"], inherited["stack"]]), return_inverse=True)
        made_by_loader = [_is_first_in(snapshot, stack, self._loaders) for stack in stacks.tolist()]
        return Outstanding(
            allocations, inherited, self._objects.of(space), self._mapped.of(space),
            np.array(made_by_loader, np.bool_)[of] if len(of) else np.zeros(0, np.bool_),
            _traits(self._traits, np.concatenate([allocations["site"], inherited["site"]])), self._some_hides,
            self._heaps.of(space) if self._heaps is not None else None, self._has_break,
        )


def _traits(known: Mapping[int, int], sites: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint8]:
    """Return the MemoryTraits of blocks by the sites that made them."""
    traits = np.zeros(len(sites), np.uint8)
    for index, memory in known.items():
        traits[sites == index] = memory
    return traits


def _with_whole_pages(sites: Sequence[int], blocks: Records) -> Records:
    """Give blocks of pvalloc(3), by its sites, the size that they have: it rounds up to whole pages, which are the
    program's."""
    chosen = is_any_of(blocks["site"], sites) if sites else np.zeros(0, np.bool_)
    if not chosen.any():
        return blocks
    rounded = blocks.copy()
    rounded["size"][chosen] = (rounded["size"][chosen] + _PAGE - _ONE) // _PAGE * _PAGE
    return rounded


def _is_first_in(snapshot: Snapshot, stack: int, binaries: set[int]) -> bool:
    known = snapshot.stacks.get(stack)
    return known is not None and bool(known.frames) and known.frames[0] >> FRAME_BINARY_SHIFT in binaries
