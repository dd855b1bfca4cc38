"""What is outstanding in an address space, as its reachability is told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hand_made import Code, blocks, snapshot
from hypothesis import given
from hypothesis import strategies as st

from tracer.model.operations import MemoryTrait, Operation
from tracer.model.snapshot import SiteInfo
from tracer.scanning.outstanding import OutstandingTable, RowsBySpace, rows_of

LOADER = 3


@pytest.mark.parametrize(("asked", "given"), [(0, 0), (1, 4096), (4096, 4096), (4097, 8192)])
def test_pvalloc_gives_whole_pages(asked: int, given: int) -> None:
    sites = tuple(SiteInfo(Operation.ALLOC, name, "libc.so.6", None) for name in ("valloc", "pvalloc"))
    rows = [{"address": 0x8000 * (1 + site), "size": asked, "site": site} for site in range(2)]
    made = snapshot(sites=sites, allocations=blocks(*rows))
    assert OutstandingTable(made).of((812, 1)).allocations["size"].tolist() == [asked, given]
    assert made.allocations["size"].tolist() == [asked, asked]


def test_blocks_have_what_a_spec_says_of_their_memory() -> None:
    """Those of a parent too, and so do those that the loader made hold there."""
    code = Code()
    loader, own = code.stack(1, code.frame("dl_open", binary=LOADER)), code.stack(2, code.frame("main"))
    sites = (
        SiteInfo(Operation.ALLOC, "malloc", "libc.so.6", None),
        SiteInfo(Operation.ALLOC, "pool_alloc", "srv", "pool", memory=int(MemoryTrait.ROOT)),
    )
    rows = blocks({"address": 0x8000, "site": 0, "stack": own}, {"address": 0x9000, "site": 1, "stack": loader})
    made = snapshot(code, sites=sites, allocations=rows, inherited=rows[::-1].copy())
    found = OutstandingTable(made).of((812, 1))
    assert found.memory.tolist() == [0, MemoryTrait.ROOT, MemoryTrait.ROOT, 0]
    assert found.holds.tolist() == [False, True, True, False]
    assert not found.some_hides
    hiding = (sites[0], replace(sites[1], memory=int(MemoryTrait.HIDES)))
    assert OutstandingTable(snapshot(code, sites=hiding)).of((812, 1)).some_hides


@given(st.lists(st.tuples(st.sampled_from((7, 8, 1 << 22)), st.sampled_from((0, 1, 65535))), max_size=12))
def test_rows_by_space_are_those_of_each_space(spaces: list[tuple[int, int]]) -> None:
    rows = blocks(*({"pid": pid, "generation": generation, "address": n} for n, (pid, generation) in enumerate(spaces)))
    table = RowsBySpace(rows)
    for space in {*spaces, (7, 2), (9, 0)}:
        assert table.of(space).tolist() == rows_of(rows, space).tolist()
