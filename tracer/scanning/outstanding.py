"""Outstanding blocks, objects and mappings of one address space, as reachability takes them."""

from __future__ import annotations

import re
from pathlib import PurePath

import numpy as np
import numpy.typing as npt

from tracer.model.addresses import Space
from tracer.model.operations import MemoryTrait
from tracer.model.records import FRAME_BINARY_SHIFT
from tracer.model.snapshot import Records, Snapshot
from tracer.reachability.reach_records import Outstanding

_PAGE, _ONE = np.uint64(4096), np.uint64(1)
_LOADER = re.compile(r"ld-linux|ld-musl|ld-\d")


def rows_of(rows: Records, space: Space) -> Records:
    """Return those rows that are of one address space: all as they are where there is no other."""
    is_of_space = (rows["pid"] == space[0]) & (rows["generation"] == space[1])
    of_space: Records = rows if is_of_space.all() else rows[is_of_space]
    return of_space


def outstanding(snapshot: Snapshot, space: Space) -> Outstanding:
    """Return what is alive in a space; blocks that the dynamic loader made hold by themselves."""
    loaders = {b.id for b in snapshot.binaries if _LOADER.match(PurePath(b.path).name)}
    allocations, inherited = (
        _with_whole_pages(snapshot, rows_of(rows, space)) for rows in (snapshot.allocations, snapshot.inherited)
    )
    stacks, of = np.unique(np.concatenate([allocations["stack"], inherited["stack"]]), return_inverse=True)
    made_by_loader = [_is_first_in(snapshot, stack, loaders) for stack in stacks.tolist()]
    return Outstanding(
        allocations, inherited, rows_of(snapshot.objects, space), rows_of(snapshot.mapped, space),
        np.array(made_by_loader, np.bool_)[of] if len(of) else np.zeros(0, np.bool_),
        _traits(snapshot, np.concatenate([allocations["site"], inherited["site"]])),
        any(site.memory & MemoryTrait.HIDES for site in snapshot.sites),
    )


def _traits(snapshot: Snapshot, sites: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint8]:
    """Return the MemoryTraits of blocks by the sites that made them."""
    traits = np.zeros(len(sites), np.uint8)
    for index, site in enumerate(snapshot.sites):
        if site.memory:
            traits[sites == index] = site.memory
    return traits


def _with_whole_pages(snapshot: Snapshot, blocks: Records) -> Records:
    """Give blocks of pvalloc(3) the size that they have: it rounds up to whole pages, which are the program's."""
    sites = [index for index, site in enumerate(snapshot.sites) if site.function == "pvalloc"]
    if not sites:
        return blocks
    chosen, rounded = np.isin(blocks["site"], sites), blocks.copy()
    rounded["size"][chosen] = (rounded["size"][chosen] + _PAGE - _ONE) // _PAGE * _PAGE
    return rounded


def _is_first_in(snapshot: Snapshot, stack: int, binaries: set[int]) -> bool:
    known = snapshot.stacks.get(stack)
    return known is not None and bool(known.frames) and known.frames[0] >> FRAME_BINARY_SHIFT in binaries
