"""What is outstanding in an address space, as its reachability is told."""

from __future__ import annotations

import pytest
from hand_made import blocks, snapshot

from tracer.model.operations import Operation
from tracer.model.snapshot import SiteInfo
from tracer.scanning.outstanding import outstanding


@pytest.mark.parametrize(("asked", "given"), [(0, 0), (1, 4096), (4096, 4096), (4097, 8192)])
def test_pvalloc_gives_whole_pages(asked: int, given: int) -> None:
    sites = tuple(SiteInfo(Operation.ALLOC, name, "libc.so.6", None) for name in ("valloc", "pvalloc"))
    rows = [{"address": 0x8000 * (1 + site), "size": asked, "site": site} for site in range(2)]
    made = snapshot(sites=sites, allocations=blocks(*rows))
    assert outstanding(made, (812, 1)).allocations["size"].tolist() == [asked, given]
    assert made.allocations["size"].tolist() == [asked, asked]
