"""Regions that are an allocator's, beside those that the layout of the address space tells."""

from __future__ import annotations

import numpy as np
import pytest

from tracer.model.records import MAPPED_RECORD
from tracer.reachability.heaps import with_heaps
from tracer.reachability.memory import REGION, STORAGE, WORD, Memory, RegionKind

MAPPING, STACK, BREAK, ALLOCATOR, GLOBAL = (
    RegionKind.MAPPING, RegionKind.STACK, RegionKind.BREAK, RegionKind.ALLOCATOR, RegionKind.GLOBAL
)  # fmt: skip
REGIONS = [(0x1000, 0x5000, BREAK), (0x8000, 0xC000, MAPPING), (0xC000, 0xE000, STACK), (0xF000, 0x10000, GLOBAL)]


def kinds(*heaps: tuple[int, int], blocks: tuple[int, ...] = (), has_break: bool = True) -> list[tuple[int, int, int]]:
    rows = np.zeros(len(heaps), MAPPED_RECORD)
    for row, (start, end) in zip(rows, heaps, strict=True):
        row["start"], row["length"] = start, end - start
    memory = with_heaps(Memory(regions=np.array(REGIONS, REGION)), rows, np.array(blocks, np.uint64),
                        has_break=has_break)  # fmt: skip
    found: list[tuple[int, int, int]] = []
    for start, end, kind in memory.regions.tolist():
        if found and found[-1][1:] == (start, kind):
            start = found.pop()[0]
        found.append((start, end, kind))
    return found


def test_nothing_of_theirs_changes_nothing() -> None:
    assert kinds() == REGIONS


def test_a_part_of_a_region_is_theirs() -> None:
    """Neighbours of equal rights are one entry of /proc/PID/maps; threads' stacks and data are never theirs."""
    found = kinds((0x9000, 0xA000), (0xB000, 0xF800))
    assert found == [
        REGIONS[0], (0x8000, 0x9000, MAPPING), (0x9000, 0xA000, ALLOCATOR), (0xA000, 0xB000, MAPPING),
        (0xB000, 0xC000, ALLOCATOR), *REGIONS[2:],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("blocks", "has_break", "kind"),
    [((0x2000,), True, ALLOCATOR), ((0x2000,), False, BREAK), ((0x9000,), True, BREAK), ((), True, BREAK)],
)
def test_the_break_is_theirs_where_a_block_lies_in_it(
    blocks: tuple[int, ...], has_break: bool, kind: RegionKind
) -> None:
    assert kinds(blocks=blocks, has_break=has_break) == [(0x1000, 0x5000, kind), *REGIONS[1:]]


def test_thread_local_storage_of_theirs() -> None:
    """In every thread, wherever it is: 16 bytes each, 64 below the thread pointers 0xC800 and 0xD800."""
    words = [(at + place, at) for at in (0xC800, 0xD800) for place in (0, 16)]
    memory = Memory(
        np.array(REGIONS, REGION), np.array([*words, (0x8800, 0x8800)], WORD),
        allocator_storage=np.array([(-64, 16), (-0x7000, 8)], STORAGE),
    )  # fmt: skip
    found = with_heaps(memory, np.zeros(0, MAPPED_RECORD), np.zeros(0, np.uint64), has_break=False).regions
    assert [(start, end) for start, end, kind in found.tolist() if kind == ALLOCATOR] == [
        (0xC7C0, 0xC7D0), (0xD7C0, 0xD7D0)
    ]  # fmt: skip
    assert {kind for start, _, kind in found.tolist() if 0xC000 <= start < 0xE000} == {STACK, ALLOCATOR}
    assert found["start"][0] == 0x1000
