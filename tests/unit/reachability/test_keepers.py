"""By which other object an object lives, against the same by sets; and what each kind of holder counts for."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pytest
from hand_made import records
from hypothesis import given, settings
from hypothesis import strategies as st
from test_reachability import GLOBALS, POOL, SIZE, STACK, block, flags, memory_of

from tracer.model.operations import MemoryTrait
from tracer.model.reachability import KIND_REFERENCE
from tracer.model.records import ALLOCATION_RECORD, MAPPED_RECORD, OBJECT_RECORD
from tracer.reachability.edges import Edges
from tracer.reachability.holders import FREED, GONE, MODULE, Surroundings
from tracer.reachability.keepers import keepers
from tracer.reachability.memory import RegionKind
from tracer.reachability.reach_records import Outstanding, reach_and_holders

Pairs = set[tuple[int, int]]


def edges_of(pairs: Collection[tuple[int, int]], rooted: Collection[int], passing: Collection[int]) -> Edges:
    rows = [(source, target, 0) for source, target in pairs]
    rows += [(-1, target, RegionKind.GLOBAL) for target in rooted]
    rows += [(-1, target, RegionKind.STACK) for target in passing]
    source, target, kind = np.array(rows, np.int64).reshape(-1, 3).T
    nothing = np.zeros(len(rows), np.uint64)
    return Edges(
        source.astype(np.int32), target.astype(np.int32), nothing == 0, nothing, nothing, kind.astype(np.uint8)
    )  # fmt: skip


def naive_keepers(
    count: int, pairs: Pairs, objects: set[int], lives: set[int], rooted: set[int], passing: set[int]
) -> list[set[int]]:
    """Return by which objects each may live, by the definitions; empty where it lives by itself, or is none."""
    below = [{node} for node in range(count)]
    for _ in range(count):
        for source, target in pairs:
            below[source] |= below[target]
    ring = [frozenset(other for other in below[node] if node in below[other]) for node in range(count)]
    above: dict[frozenset[int], set[int]] = {}
    held: dict[frozenset[int], bool] = {}
    living: dict[frozenset[int], set[int]] = {}
    left = set(ring)
    while left:
        one = next(r for r in left if all(ring[s] not in left or s in r for s, t in pairs if t in r))
        left.remove(one)
        before = {source for source, target in pairs if target in one and source not in one}
        above[one] = set().union(*({s} if s in living[ring[s]] else living[ring[s]] or above[ring[s]] for s in before))
        is_held = any(not living[ring[s]] and held[ring[s]] for s in before) or bool(one & rooted)
        is_held |= not above[one] and bool(one & passing)
        living[one] = set(one & objects)
        if len(one) == 1 and above[one] and not is_held and not one & lives:
            living[one] = set()
        held[one] = is_held or not above[one]
    return [set() if n not in objects or living[ring[n]] else above[ring[n]] for n in range(count)]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Pairs, set[int], set[int], set[int], set[int]]:
    count = draw(st.integers(1, 14))
    node = st.integers(0, count - 1)
    pairs = draw(st.sets(st.tuples(node, node), max_size=24))
    if draw(st.booleans()):  # without rings
        pairs = {(min(pair), max(pair)) for pair in pairs}
    some = st.sets(node, max_size=3)
    return count, {(a, b) for a, b in pairs if a != b}, draw(st.sets(node)), draw(some), draw(some), draw(some)


@given(graphs())
@settings(max_examples=600, deadline=None)
def test_random_graphs(graph: tuple[int, Pairs, set[int], set[int], set[int], set[int]]) -> None:
    count, pairs, objects, lives, rooted, passing = graph
    lives &= objects
    edges = edges_of(pairs, rooted, passing)
    found = keepers(edges, flags(count, objects), flags(count, lives), flags(count, ())).tolist()
    for node, wanted in enumerate(naive_keepers(count, pairs, objects, lives, rooted, passing)):
        assert found[node] in wanted if wanted else found[node] == -1


def kept(
    pairs: Collection[tuple[int, int]], objects: Collection[int], count: int = 4, *, lives: Collection[int] = (),
    rooted: Collection[int] = (), passing: Collection[int] = (), holds: Collection[int] = (),
) -> dict[int, int]:  # fmt: skip
    edges = edges_of(pairs, rooted, passing)
    found = keepers(edges, flags(count, objects), flags(count, lives), flags(count, holds)).tolist()
    return {node: keeper for node, keeper in enumerate(found) if keeper >= 0}


def test_a_table_between_two_objects() -> None:
    assert kept([(0, 1), (1, 2), (2, 3)], {0, 2, 3}) == {2: 0, 3: 0}


def test_one_that_lives_by_itself_keeps_what_is_below_it() -> None:
    assert kept([(0, 1), (1, 2), (2, 3)], {0, 2, 3}, lives={2}) == {3: 2}


@pytest.mark.parametrize("rooted", [{2}, {1}])
def test_what_data_or_a_table_of_theirs_points_at_is_not_kept(rooted: set[int]) -> None:
    assert kept([(0, 1), (1, 2)], {0, 2}, rooted=rooted) == {}
    assert kept([(0, 1), (1, 2)], {0, 2}, holds=rooted) == {}


def test_what_a_lost_table_points_at_is_not_kept() -> None:
    assert kept([(0, 2), (1, 2)], {0, 2}) == {}
    assert kept([(0, 2), (1, 2)], {0, 1, 2}) == {2: 0}


def test_words_on_stacks_hold_where_nothing_else_does() -> None:
    assert kept([(0, 1)], {0, 1}, passing={1}) == {1: 0}
    assert kept([(0, 1), (2, 1)], {0, 1}, passing={2}) == {}


def test_a_ring_keeps_itself_and_what_is_below_it() -> None:
    assert kept([(0, 1), (1, 2), (2, 1), (2, 3)], {0, 1, 2, 3}) == {3: 2}
    assert kept([(0, 1), (1, 2), (2, 1), (2, 3)], {0, 3}) == {3: 0}  # a ring of a table's


def test_a_long_list() -> None:
    """No recursion: a list of 50,000 objects lives by its first."""
    count = 50_000
    found = kept([(node, node + 1) for node in range(count - 1)], range(count), count)
    assert found == dict.fromkeys(range(1, count), 0)


def test_what_nobody_counts_is_not_looked_at() -> None:
    assert kept([(0, 1)], ()) == {}


def told(words: list[tuple[int, int]], counts: list[int], hides: Collection[int] = ()) -> list[int]:
    """Return the keepers of objects at the starts of blocks, by number."""
    number = len(counts)
    made = records(ALLOCATION_RECORD, [{"address": block(i), "size": SIZE} for i in range(number)])
    rows = [{"address": block(i), "object": block(i), "count": count} for i, count in enumerate(counts)]
    traits = np.where(flags(number, hides), MemoryTrait.HIDES, 0).astype(np.uint8)
    alive = Outstanding(
        made, made[:0], records(OBJECT_RECORD, rows), np.zeros(0, MAPPED_RECORD), flags(number, ()), traits
    )
    around = Surroundings(np.zeros(0, MODULE), np.zeros(0, FREED), np.zeros(0, GONE))
    found, _ = reach_and_holders(memory_of(sorted(words)), alive, around, (0, 0), free_holds=False)
    of = {block(i): i for i in range(number)}
    return [of.get(int(keeper), -1) for keeper in found[found["kind"] == KIND_REFERENCE]["keeper"]]


def test_references_that_no_word_is_keep_an_object_alive_by_itself() -> None:
    words = [(block(0) + 8, block(1)), (block(1) + 8, block(2))]
    assert told(words, [1, 1, 1]) == [-1, 0, 0]
    assert told(words, [1, 2, 1]) == [-1, -1, 1]
    assert told([*words, (block(0) + 16, block(1))], [1, 2, 1]) == [-1, 0, 0]
    assert told([*words, (STACK, block(1))], [1, 2, 1]) == [-1, -1, 1]
    assert told([*words, (STACK, block(1))], [1, 1, 1]) == [-1, 0, 0]
    for root in (GLOBALS, POOL):
        assert told([*words, (root, block(1))], [1, 2, 1]) == [-1, -1, 1]


def test_nobody_is_told_to_keep_what_a_hidden_pointer_may_hold() -> None:
    words = [(GLOBALS, block(0)), (block(0) + 8, block(1))]
    assert told(words, [1, 1]) == [-1, 0]
    assert told(words, [1, 1], hides=[0]) == [-1, -1]
