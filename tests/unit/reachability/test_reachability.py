"""Which blocks are reachable, against the same by sets; and what each kind of pointer counts for."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import pytest
from hand_made import records
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_marking import Pointer, naive_classes

from tracer.model.operations import MemoryTrait
from tracer.model.reachability import KIND_MAPPING, Reach, RootKind
from tracer.model.records import ALLOCATION_RECORD, MAPPED_RECORD, OBJECT_RECORD
from tracer.reachability.block_table import BlockTable
from tracer.reachability.classes import Classes, DescribedMemory, classify
from tracer.reachability.edges import FreeWords, edges_and_traces, find_edges
from tracer.reachability.holders import FREED, GONE, MODULE, Surroundings
from tracer.reachability.memory import HEAD, REGION, WORD, Memory, RegionKind
from tracer.reachability.reach_records import Outstanding, reach_and_holders

HEAP, GLOBALS, STACK, POOL = 0x5555_0000_0000, 0x4000_0000, 0x7FFF_0000_0000, 0x7000_0000_0000
SIZE = 64
REGIONS = np.array(
    [
        (0, 0x400, RegionKind.ENDING_REGISTER),
        (GLOBALS, GLOBALS + (1 << 20), RegionKind.GLOBAL),
        (HEAP, HEAP + (1 << 32), RegionKind.ALLOCATOR),
        (POOL, POOL + (1 << 20), RegionKind.MAPPING),
        (STACK, STACK + (1 << 20), RegionKind.ENDING_STACK),
    ],
    REGION,
)
UNSEEN = np.uint64(0)


def block(index: int) -> int:
    return HEAP + 0x100 + 96 * index


def blocks_of(*spans: tuple[int, int]) -> BlockTable:
    start, size = (np.array(column, np.uint64) for column in zip(*spans, strict=True))
    return BlockTable(start, size)


def memory_of(words: list[tuple[int, int]], **more: object) -> Memory:
    return Memory(REGIONS, np.array(words, WORD), **more)  # type: ignore[arg-type]


def flags(count: int, chosen: Collection[int]) -> npt.NDArray[np.bool_]:
    return np.array([index in chosen for index in range(count)])


def described(count: int, *, roots: Collection[int] = (), hides: Collection[int] = (), more: bool = False) -> (
    DescribedMemory
):  # fmt: skip
    return DescribedMemory(flags(count, roots), flags(count, hides), more)


def marked(
    blocks: BlockTable, memory: Memory, holds: Collection[int] = (), free_holds: bool = False,
    described: DescribedMemory | None = None,
) -> Classes:  # fmt: skip
    edges = find_edges(memory, blocks, free_holds=free_holds)
    return classify(blocks, edges, flags(len(blocks), holds), described)


def classes_of(blocks: BlockTable, memory: Memory, **more: object) -> list[Reach]:
    return [Reach(mark) for mark in marked(blocks, memory, **more).reach.tolist()]  # type: ignore[arg-type]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[Pointer], set[int], set[int]]:
    count = draw(st.integers(1, 24))
    node = st.integers(0, count - 1)
    pointer = st.builds(
        Pointer, source=st.one_of(node, node, node, st.just(-1)), target=node,
        strong=st.sampled_from([True, True, True, False]), ending=st.booleans(),
    )  # fmt: skip
    return count, draw(st.lists(pointer, max_size=50)), draw(st.sets(node, max_size=1)), draw(st.sets(node, max_size=2))


@given(graphs())
@settings(max_examples=400, deadline=None)
def test_random_graphs_are_marked_as_by_sets(graph: tuple[int, list[Pointer], set[int], set[int]]) -> None:
    count, pointers, holds, hides = graph
    words, slots = [], [0] * (count + 1)
    kept = []
    for pointer in pointers:
        room = 1 << 10 if pointer.source < 0 else SIZE // 8
        if pointer.source == pointer.target or slots[pointer.source] >= room:
            continue
        base = block(pointer.source) if pointer.source >= 0 else STACK if pointer.ending else GLOBALS
        words.append((base + 8 * slots[pointer.source], block(pointer.target) + (0 if pointer.strong else 16)))
        slots[pointer.source] += 1
        kept.append(pointer)
    blocks = blocks_of(*((block(index), SIZE) for index in range(count)))
    found = marked(blocks, memory_of(sorted(words)), holds, described=described(count, hides=hides))
    expected, leaders = naive_classes(count, kept, holds, hides)
    assert [Reach(mark) for mark in found.reach.tolist()] == expected
    for index, owner in enumerate(found.owner.tolist()):
        if expected[index] == Reach.INDIRECT:
            assert owner in {block(leader) for leader in leaders[index]}
        else:
            assert owner == 0


def test_long_and_wide_graphs() -> None:
    """A list of 50,000, whose first a global holds, and 20,000 children of one lost block; fronts of both widths."""
    length, children = 50_000, 20_000
    lists = [(block(i), block(i + 1)) for i in range(length - 1)]
    spans = [(block(i), SIZE) for i in range(length)]
    parent, first = block(length), block(length + 4000)
    spans += [(parent, 8 * children)] + [(first + 96 * i, SIZE) for i in range(children)]
    words = [(GLOBALS, block(0)), *lists] + [(parent + 8 * i, first + 96 * i) for i in range(children)]
    found = marked(blocks_of(*spans), memory_of(words))
    assert np.bincount(found.reach).tolist() == [0, length, 0, 0, 1, children]
    assert set(found.owner[-children:].tolist()) == {parent}
    assert set(found.root[:length].tolist()) == {GLOBALS}


def test_what_is_free_holds_nothing_unless_data_were_lost() -> None:
    blocks, free = blocks_of((block(0), SIZE)), HEAP + 0x10000
    memory = memory_of([(free, block(0))])
    assert classes_of(blocks, memory) == [Reach.LOST]
    assert classes_of(blocks, memory, free_holds=True) == [Reach.REACHABLE]


def test_what_was_freed_after_the_memory_was_read_holds() -> None:
    blocks, free = blocks_of((block(0), SIZE)), HEAP + 0x10000
    memory = memory_of([(free + 8, block(0))])
    later = np.array([(free, 16)], [("address", "<u8"), ("size", "<u8")])
    edges, traces = edges_and_traces(memory, blocks, FreeWords(still_held=later))
    assert (len(edges), len(traces)) == (1, 0)
    later["size"] = 8
    edges, traces = edges_and_traces(memory, blocks, FreeWords(still_held=later))
    assert (len(edges), len(traces)) == (0, 1)


def test_a_pointer_to_itself_does_not_count() -> None:
    assert classes_of(blocks_of((block(0), SIZE)), memory_of([(block(0) + 8, block(0))])) == [Reach.LOST]


@pytest.mark.parametrize("tag", [0, 1, 7, 1 << 48, 0xFFFF << 48 | 5])
def test_tags_in_a_pointer(tag: int) -> None:
    assert classes_of(blocks_of((block(0), 1)), memory_of([(GLOBALS, block(0) | tag)])) == [Reach.REACHABLE]


def test_the_end_of_a_block_is_not_in_it() -> None:
    blocks = blocks_of((block(0), SIZE))
    assert classes_of(blocks, memory_of([(GLOBALS, block(0) + SIZE - 1)])) == [Reach.POSSIBLE]
    assert classes_of(blocks, memory_of([(GLOBALS, block(0) + SIZE)])) == [Reach.LOST]


@pytest.mark.parametrize(
    ("size", "offset", "before"),
    [
        (25 + 15, 24, (11, 15, 0)),  # a string of libstdc++ before C++11: length, capacity, users
        (72, 8, (0, 0, 64)),  # a length of bytes before them
        (8 + 5 * 24, 8, (0, 0, 5)),  # new T[5]
    ],
)
def test_containers_keep_interior_pointers(size: int, offset: int, before: tuple[int, int, int]) -> None:
    blocks, pointer = blocks_of((block(0), size)), block(0) + offset
    words = [(GLOBALS, pointer)]
    heads = np.array([(pointer, before)], HEAD)
    assert classes_of(blocks, memory_of(words, heads=heads)) == [Reach.REACHABLE]
    wrong = np.array([(pointer, (9, 7, 0))], HEAD)
    assert classes_of(blocks, memory_of(words, heads=wrong)) == [Reach.POSSIBLE]
    assert classes_of(blocks, memory_of(words)) == [Reach.POSSIBLE]


def test_a_second_base_class() -> None:
    blocks, words = blocks_of((block(0), SIZE)), [(GLOBALS, block(0) + 16)]
    both = np.array([block(0), block(0) + 16], np.uint64)
    assert classes_of(blocks, memory_of(words, vtables=both)) == [Reach.REACHABLE]
    assert classes_of(blocks, memory_of(words, vtables=both[1:])) == [Reach.POSSIBLE]


def slice_ring(*pages: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the words that link pages (start, length) of GLib's slices: next and previous, 48 bytes before the end."""
    infos = [start + length - 48 for start, length in pages]
    after, before = [*infos[1:], infos[0]], [infos[-1], *infos[:-1]]
    links = zip(infos, after, before, strict=True)
    return [word for info, next_, previous in links for word in ((info + 16, next_), (info + 24, previous))]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_pointers_at_structs_in_slice_pages_of_glib_are_whole(count: int) -> None:
    """A GLib program with a list in a variable was a "POSSIBLE LEAK", and so was what hangs below the list."""
    pages = [(HEAP + 512 * index, 512) for index in range(count)]
    ring, below = slice_ring(*pages), HEAP + 0x10000
    blocks = blocks_of(*((start, length - 16) for start, length in pages), (below, 24))
    held = memory_of([(GLOBALS, HEAP + 48), (HEAP + 56, below), *ring])
    assert classes_of(blocks, held) == [Reach.REACHABLE] * (count + 1)
    dropped = memory_of([(HEAP + 56, below), *ring])
    assert Reach.REACHABLE not in classes_of(blocks, dropped)


@pytest.mark.parametrize("wrong", ["size", "place", "next", "previous", "page"])
def test_only_rings_of_aligned_pages_of_one_size_are_slice_pages(wrong: str) -> None:
    first, second = (HEAP + (16 if wrong == "place" else 0), 512), (HEAP + 1024, 1024 if wrong == "page" else 512)
    blocks = blocks_of((first[0], 504 if wrong == "size" else 496), (second[0], second[1] - 16))
    words = slice_ring(first, second)
    if wrong in ("next", "previous"):
        words[1 if wrong == "next" else 0] = (words[1 if wrong == "next" else 0][0], HEAP + 8)
    assert classes_of(blocks, memory_of([(GLOBALS, first[0] + 48), *words])) == [Reach.POSSIBLE] * 2


def test_root_kinds() -> None:
    blocks = blocks_of(*((block(index), SIZE) for index in range(4)))
    found = marked(blocks, memory_of([(8, block(0)), (GLOBALS + 8, block(1)), (POOL, block(2)), (STACK, block(3))]))
    assert found.reach.tolist() == [Reach.STACK, Reach.REACHABLE, Reach.REACHABLE, Reach.STACK]
    assert found.root_kind.tolist() == [RootKind.REGISTER, RootKind.GLOBAL, RootKind.MAPPING, RootKind.STACK]
    assert found.root.tolist() == [8, GLOBALS + 8, POOL, STACK]


def test_what_the_loader_made_holds_by_itself() -> None:
    blocks = blocks_of((block(0), SIZE), (block(1), SIZE))
    found = marked(blocks, memory_of([(block(0), block(1))]), {0})
    assert found.reach.tolist() == [Reach.REACHABLE, Reach.REACHABLE]
    assert found.root_kind.tolist() == [RootKind.BLOCK, RootKind.BLOCK]


def test_what_a_spec_calls_a_root_holds_and_is_held() -> None:
    """A global that points there too is the better reason."""
    blocks = blocks_of(*((block(index), SIZE) for index in range(5)))
    words = [(GLOBALS, block(2)), (block(0), block(1)), (STACK, block(0))]
    found = marked(blocks, memory_of(words), described=described(5, roots=(0, 2, 3)))
    assert found.reach.tolist() == [*[Reach.REACHABLE] * 4, Reach.LOST]
    spec = RootKind.DESCRIBED
    assert found.root_kind.tolist() == [spec, spec, RootKind.GLOBAL, spec, RootKind.NONE]


@pytest.mark.parametrize(
    ("word", "mark"),
    [((GLOBALS, 0), Reach.REACHABLE), ((STACK, 0), Reach.STACK), ((GLOBALS, 16), Reach.POSSIBLE)],
)
def test_what_is_hidden_is_held_as_what_hides_it(word: tuple[int, int], mark: Reach) -> None:
    blocks = blocks_of(*((block(index), SIZE) for index in range(3)))
    words = [(word[0], block(0) + word[1]), (block(1), block(2))]
    found = marked(blocks, memory_of(words), described=described(3, hides=(0,)))
    assert (found.reach.tolist(), found.hidden) == ([mark] * 3, mark)
    assert found.root_kind.tolist()[1:] == [RootKind.HIDDEN] * 2


def test_what_only_lost_memory_hides_is_lost() -> None:
    blocks = blocks_of(*((block(index), SIZE) for index in range(3)))
    memory = memory_of([(GLOBALS, block(0)), (block(1), block(2))])
    found = marked(blocks, memory, described=described(3, hides=(1,)))
    assert (found.reach.tolist(), found.hidden) == ([Reach.REACHABLE, Reach.LOST, Reach.INDIRECT], Reach.UNKNOWN)
    found = marked(blocks, memory, described=described(3, hides=(1,), more=True))
    assert (found.reach.tolist(), found.hidden) == ([Reach.REACHABLE] * 3, Reach.REACHABLE)


@pytest.mark.parametrize(("hides", "reach", "root"), [
    ((), Reach.LOST, RootKind.NONE), ((0,), Reach.REACHABLE, RootKind.HIDDEN), ((1,), Reach.LOST, RootKind.NONE),
])  # fmt: skip
def test_a_mapping_may_be_held_by_a_hidden_pointer(hides: tuple[int, ...], reach: Reach, root: RootKind) -> None:
    made = records(ALLOCATION_RECORD, [{"address": block(i), "size": SIZE} for i in range(2)], pid=812, generation=1)
    maps = records(MAPPED_RECORD, [{"start": POOL, "length": 4096}], pid=812, generation=1)
    traits = np.where(flags(2, hides), MemoryTrait.HIDES, 0).astype(np.uint8)
    alive = Outstanding(made, made[:0], np.zeros(0, OBJECT_RECORD), maps, flags(2, ()), traits)
    around = Surroundings(np.zeros(0, MODULE), np.zeros(0, FREED), np.zeros(0, GONE))
    rows, _ = reach_and_holders(memory_of([(GLOBALS, block(0))]), alive, around, (812, 1), free_holds=False)
    (row,) = rows[rows["kind"] == KIND_MAPPING]
    assert (row["reach"], row["root_kind"]) == (reach, root)


@pytest.mark.parametrize(("word", "free_holds", "reach", "root", "kind"), [
    (block(0), False, Reach.REACHABLE, GLOBALS, RootKind.GLOBAL),
    (block(1), False, Reach.INDIRECT, 0, RootKind.NONE),
    (block(5), False, Reach.LOST, 0, RootKind.NONE), (block(5), True, Reach.REACHABLE, block(5), RootKind.MAPPING),
    (block(6), True, Reach.LOST, 0, RootKind.NONE),
])  # fmt: skip
def test_a_mapping_is_held_by_what_holds_the_block_or_may_be_one(
    word: int, free_holds: bool, reach: Reach, root: int, kind: RootKind
) -> None:
    """The first block is held by a global, the second by nothing, the third is known to be free. Where blocks are not
    known, as those older than the trace, a mapping that only they point at was called lost."""
    made = records(ALLOCATION_RECORD, [{"address": block(i), "size": SIZE} for i in range(2)], pid=812, generation=1)
    maps = records(MAPPED_RECORD, [{"start": POOL, "length": 4096}], pid=812, generation=1)
    alive = Outstanding(made, made[:0], np.zeros(0, OBJECT_RECORD), maps, flags(2, ()), np.zeros(2, np.uint8))
    freed = records(FREED, [{"address": block(6), "size": SIZE}])
    around = Surroundings(np.zeros(0, MODULE), freed, np.zeros(0, GONE))
    memory = memory_of([(GLOBALS, block(0)), (word, POOL + 16)])
    found, _ = reach_and_holders(memory, alive, around, (812, 1), free_holds=free_holds, knows_freed=free_holds)
    (row,) = found[found["kind"] == KIND_MAPPING]
    assert (row["reach"], row["root"], row["root_kind"]) == (reach, root, kind)


@pytest.mark.parametrize("pointer", [POOL, POOL + 0x1800, POOL + 0x3FFF, 0, POOL + 0x4000])
def test_pieces_of_a_mapping_and_what_was_put_over_it_are_held_together(pointer: int) -> None:
    """Two pieces of one, another at a fixed address between them, and a second mapping behind; none holds itself."""
    rows = [
        {"start": POOL, "time_ns": 5}, {"start": POOL + 0x1000, "time_ns": 7, "reserved_ns": 5},
        {"start": POOL + 0x2000, "time_ns": 5, "length": 0x2000}, {"start": POOL + 0x4000, "time_ns": 6},
    ]  # fmt: skip
    maps = records(MAPPED_RECORD, rows, pid=812, generation=1, length=0x1000)
    none = np.zeros(0, ALLOCATION_RECORD)
    alive = Outstanding(none, none, np.zeros(0, OBJECT_RECORD), maps, np.zeros(0, np.bool_), np.zeros(0, np.uint8))
    around = Surroundings(np.zeros(0, MODULE), np.zeros(0, FREED), np.zeros(0, GONE))
    memory = memory_of([(GLOBALS, pointer), (POOL + 0x2008, POOL), (POOL + 0x1008, POOL + 0x2000)])
    found, _ = reach_and_holders(memory, alive, around, (812, 1), free_holds=False)
    first = Reach.REACHABLE if pointer and pointer < POOL + 0x4000 else Reach.LOST
    last = Reach.REACHABLE if pointer == POOL + 0x4000 else Reach.LOST
    assert found["reach"].tolist() == [first, first, first, last]
    assert found["root"].tolist() == [GLOBALS if reach == Reach.REACHABLE else 0 for reach in found["reach"]]


@pytest.mark.parametrize(
    ("uses_slack", "offset", "expected"),
    [(True, 96, Reach.REACHABLE), (True, 104, Reach.LOST), (False, 88, Reach.REACHABLE), (False, 96, Reach.LOST)],
)
def test_the_rounded_size_of_a_block_of_glibc(uses_slack: bool, offset: int, expected: Reach) -> None:
    """Of 90 bytes there are 104: a program that asks for it may keep a pointer there, in others it is a leftover."""
    blocks = BlockTable(np.array([block(0), block(2)]), np.array([90, SIZE], np.uint64), uses_slack=uses_slack)
    words = [(GLOBALS, block(0)), (block(0) + offset, block(2))]
    assert classes_of(blocks, memory_of(words)) == [Reach.REACHABLE, expected]


def test_what_malloc_keeps_of_free_chunks_holds_nothing() -> None:
    """The chunk behind a block begins in the block's last word: the top of the heap points into the block below it."""
    bins = [GLOBALS + 0x1000 + 8 * word for word in range(254)]
    words = [(at, at - 16 - at % 16) for at in bins[4:]]  # all are empty but the first two
    words += [(at, block(0) + 48) for at in (bins[0], bins[0] - 16, bins[0] - 96)]
    words += [(GLOBALS + 0x9000, GLOBALS + 0x9000 - 16)]  # something else that points before itself
    blocks = blocks_of((block(0), 56))
    assert classes_of(blocks, memory_of(sorted(words))) == [Reach.LOST]
    before, behind = (bins[0] - 104, block(0) + 48), (bins[-1] + 8, block(0) + 48)
    for pointer in (before, behind):
        assert classes_of(blocks, memory_of(sorted([*words, pointer]))) == [Reach.POSSIBLE]


@pytest.mark.parametrize(("first", "last"), [(1, 0), (1, 2), (0, 1), (5, 40)])
def test_the_books_of_each_arena_hold_nothing(first: int, last: int) -> None:
    """Threads have arenas of their own. `first`, `last`: how many bins are in use at the beginning, and at the end."""
    words = []
    arenas = (GLOBALS + 0x1000, POOL + 0x890, POOL + 0x8000, HEAP + 0x100090)
    for begin in arenas:
        bins = [begin + 16 * index for index in range(127)]
        used = [*bins[:first], *bins[127 - last :]]
        words += [(at + second, at - 16) for at in bins if at not in used for second in (0, 8)]
        words += [(at + second, block(0) + 48) for at in used for second in (0, 8)]
        words += [(at, block(0) + 48) for at in (begin - 16, begin - 96)]
        chunk = HEAP + 0x200000 + 64 * len(words)
        words += [(chunk + 64 * number, at - 16) for number, at in enumerate(used)]
    blocks = blocks_of((block(0), 56))
    assert classes_of(blocks, memory_of(sorted(words))) == [Reach.LOST]
    for pointer in (arenas[0] - 104, arenas[0] + 16 * 127):
        assert classes_of(blocks, memory_of(sorted([*words, (pointer, block(0) + 48)]))) == [Reach.POSSIBLE]


def test_a_pool_in_a_block() -> None:
    """Words in a pool's block are that block's own; who holds a block of the pool holds the pool."""
    pool, first, second = (block(0), 960), (block(0) + 64, 64), (block(0) + 256, 64)
    blocks = blocks_of(pool, first, second, (block(20), SIZE))
    assert blocks.is_nested
    assert blocks.parents.tolist() == [-1, 0, 0, -1]
    words = [(GLOBALS, first[0]), (block(0) + 300, block(20))]
    assert classes_of(blocks, memory_of(words)) == [Reach.REACHABLE, Reach.REACHABLE, Reach.LOST, Reach.INDIRECT]


def test_the_same_block_from_two_allocators() -> None:
    """An allocator of the user's own that hands out what it has from malloc as it is."""
    blocks = blocks_of((block(0), 80), (block(0), SIZE), (block(1), SIZE))
    words = [(GLOBALS, block(0)), (block(0) + 8, block(1))]
    assert classes_of(blocks, memory_of(words)) == [Reach.REACHABLE] * 3


def test_nothing() -> None:
    empty = BlockTable(np.zeros(0, np.uint64), np.zeros(0, np.uint64))
    assert len(marked(empty, memory_of([(GLOBALS, block(0))])).reach) == 0
    assert classes_of(blocks_of((block(0), SIZE)), Memory()) == [Reach.LOST]
