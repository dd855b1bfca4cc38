"""Passes over the memory of a process that ran on, added up."""

from __future__ import annotations

import numpy as np

from tracer.model.snapshot import Records
from tracer.reachability.memory import HEAD, REGION, WORD, Memory, RegionKind
from tracer.reachability.merged_memory import MergedMemory

GLOBAL, MAPPING, ALLOCATOR = int(RegionKind.GLOBAL), int(RegionKind.MAPPING), int(RegionKind.ALLOCATOR)


def words(*rows: tuple[int, int]) -> Records:
    return np.array(list(rows), WORD)


def merged(*passes: Memory) -> Memory:
    found = MergedMemory()
    for one in passes:
        found.add(one)
    assert found.passes == len(passes)
    return found.memory


def test_words_of_all_passes_are_kept_once() -> None:
    found = merged(
        Memory(words=words((16, 5), (8, 5))), Memory(words=words((8, 5), (16, 6))), Memory(words=words((8, 5))),
    )  # fmt: skip
    assert found.words.tolist() == [(8, 5), (16, 5), (16, 6)]


def test_what_differs_between_passes_has_changed() -> None:
    same = Memory(words=words((8, 5), (16, 6)))
    assert merged(same, same, same).changed.tolist() == []
    assert merged(same, Memory(words=words((8, 5), (16, 7)))).changed.tolist() == [16]
    assert merged(same, Memory(words=words((16, 6)))).changed.tolist() == [8]
    assert merged(same, Memory(words=words((8, 5), (16, 6), (24, 5)))).changed.tolist() == [24]


def test_where_regions_differ_one_that_holds_comes_first() -> None:
    first = Memory(regions=np.array([(0, 100, ALLOCATOR), (200, 300, GLOBAL)], REGION))
    second = Memory(regions=np.array([(50, 150, MAPPING), (200, 300, GLOBAL)], REGION))
    expected = [(0, 50, ALLOCATOR), (50, 100, MAPPING), (100, 150, MAPPING), (200, 300, GLOBAL)]
    assert merged(first, second).regions.tolist() == expected
    assert merged(second, first).regions.tolist() == expected
    assert merged(first, first).regions.tolist() == first.regions.tolist()


def test_containers_and_tables_of_all_passes_are_known() -> None:
    def one(address: int, length: int, place: int, table: int) -> Memory:
        heads = np.array([(address, (0, 0, length))], HEAD)
        return Memory(heads=heads, vtables=np.array([place], np.uint64), tables=np.array([table], np.uint64))

    found = merged(one(8, 1, 32, 7), one(40, 2, 16, 8), one(8, 3, 32, 9))
    assert found.heads["address"].tolist() == [8, 40]
    assert found.heads["before"][:, 2].tolist() == [3, 2]
    assert (found.vtables.tolist(), found.tables.tolist()) == ([16, 32], [8, 9])
