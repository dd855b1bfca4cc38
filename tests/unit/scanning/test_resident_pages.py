"""Resident memory by what it is used for: exact sums of a smaps that was made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tracer.model.reachability import Resident
from tracer.model.records import ALLOCATION_RECORD
from tracer.procfs.maps import parse_smaps
from tracer.reachability.memory import RegionKind
from tracer.scanning.layout import Layout, Range
from tracer.scanning.resident_pages import ResidentPages

ENTRIES = (
    ("400000-410000 r-xp 00000000 fe:00 26 /srv", 32, 0),
    ("410000-420000 rw-p 00010000 fe:00 26 /srv", 24, 8),
    ("420000-430000 rw-p 00000000 00:00 0 ", 4, 4),
    ("1000000-1400000 rw-p 00000000 00:00 0 [heap]", 1024, 1024),
    ("2000000-2100000 rw-p 00000000 00:00 0 ", 400, 400),
    ("3000000-3004000 rw-p 00000000 00:00 0 ", 8, 8),
    ("4000000-4004000 rw-p 00000000 00:00 0 [stack]", 12, 12),
)
SMAPS = "".join(f"{head}\nSize: 99 kB\nRss: {rss} kB\nPss: 1 kB\nAnonymous: {own} kB\n" for head, rss, own in ENTRIES)
PLAN = Layout((
    Range(0x1000000, 0x1400000, RegionKind.ALLOCATOR), Range(0x2000000, 0x2100000, RegionKind.MAPPING),
    Range(0x3001000, 0x3004000, RegionKind.STACK), Range(0x4001000, 0x4004000, RegionKind.ENDING_STACK),
), (), (), ())  # fmt: skip
KIB = 1024


def blocks(*rows: tuple[int, int]) -> np.ndarray:
    made = np.zeros(len(rows), ALLOCATION_RECORD)
    made["address"], made["size"] = np.array(rows, np.uint64).reshape(-1, 2).T
    made["stack"], made["time_ns"] = made["address"] >> np.uint64(4), 7
    return made


def test_each_page_is_counted_once() -> None:
    pages = ResidentPages(SMAPS, PLAN)
    found = pages.with_blocks(blocks((0x1000010, 3000), (0x2000010, 300 * KIB)), knows_all=False)
    assert found == Resident(
        total=1504 * KIB, live=3000 + 300 * KIB, free=1024 * KIB - 3008, stacks=20 * KIB, files=48 * KIB, data=8 * KIB,
        other=(404 - 300) * KIB, rounding=8,
    )  # fmt: skip
    assert total_of(found) == found.total


def total_of(found: Resident) -> int:
    return found.live + found.rounding + found.free + found.stacks + found.files + found.data + found.other


def test_another_mallocs_rounding_is_not_known() -> None:
    found = ResidentPages(SMAPS, PLAN).with_blocks(blocks((0x1000010, 3000)), knows_all=True, is_of_glibc=False)
    assert (found.live, found.rounding, found.free) == (3000, 0, 1024 * KIB - 3000)
    assert (found.top_stack, found.free_below_top) == (0, 0)
    assert total_of(found) == found.total


def test_blocks_of_a_pool_are_in_the_pools_memory() -> None:
    whole = blocks((0x1000010, 3000), (0x1300010, 100_000))
    pieces = [(0x1300010, 64), (0x1300050, 64), (0x1300010 + 100_000 - 8, 8)]
    parts = blocks((0x1300010, 100_000), *pieces, (0x1000010, 3000))
    found = [ResidentPages(SMAPS, PLAN).with_blocks(made, knows_all=True) for made in (whole, parts)]
    assert found[0] == found[1]


def test_blocks_that_were_not_touched_are_no_more_than_there_is() -> None:
    found = ResidentPages(SMAPS, PLAN).with_blocks(blocks((0x2000010, 1 << 30)), knows_all=False)
    assert (found.live, found.other) == (404 * KIB, 0)


def test_the_last_block_of_the_heap_is_named() -> None:
    made = blocks((0x1000010, 3000), (0x1300010, 64), (0x2000010, 16))
    found = ResidentPages(SMAPS, PLAN).with_blocks(made, knows_all=True)
    assert (found.top_stack, found.top_size, found.top_made_ns) == (0x130001, 64, 7)
    assert found.free_below_top == 0x300000 - (3000 + 8)


def test_what_malloc_rounds_sizes_up_to_is_not_free() -> None:
    """A chunk has a word of its own, is a multiple of 16 bytes, and 32 at least."""
    chunks = [(1, 32), (16, 32), (24, 32), (25, 48), (40, 48), (41, 64), (1000, 1008), (1001, 1024), (0, 32)]
    made, at = [], 0x1000000
    for size, chunk in chunks * 50:
        made.append((at + 16, size))
        at += chunk
    found = ResidentPages(SMAPS, PLAN).with_blocks(blocks(*made), knows_all=True)
    assert found.free_below_top == 0


def test_nothing_is_nothing() -> None:
    assert ResidentPages("", PLAN).with_blocks(blocks(), knows_all=True) == Resident(0, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("place", [0, 2, len(ENTRIES) - 1])
@pytest.mark.parametrize("line", ["Locked: 0 kB\n", "a line of a path's\n"])
def test_a_mapping_may_have_other_lines_than_the_first(place: int, line: str) -> None:
    texts = [text for text in SMAPS.replace("\nSize", "\0Size").splitlines(keepends=True) if text]
    heads = [n for n, text in enumerate(texts) if "Size" in text]
    texts.insert(heads[place] + 1, line)
    assert list(parse_smaps("".join(texts).replace("\0", "\n"))) == list(parse_smaps(SMAPS))
    found = [(resident // KIB, anonymous // KIB) for _, resident, anonymous in parse_smaps(SMAPS)]
    assert found == [(rss, own) for _, rss, own in ENTRIES]
