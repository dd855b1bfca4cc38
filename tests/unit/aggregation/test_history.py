"""History against exact numbers and against books kept the slow way."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_history import CREATE, DELETE, GET, PUT, Kernel, batch, event, naive_history

from tracer.aggregation.history import History
from tracer.model.events import EVENT, EventFlag
from tracer.model.operations import Operation
from tracer.model.snapshot import TypeTotals
from tracer.model.statistics import NEVER_PUT

LAST, UNKNOWN = EventFlag.LAST, EventFlag.UNKNOWN
def steps(*operations: Operation) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """Return lists of (operation, pid, address, tid, stack, holder)."""
    pids, addresses = st.sampled_from([10, 11]), st.sampled_from([0x1000, 0x2000])
    holders = st.sampled_from([0, 0, 1, 2])
    return st.lists(
        st.tuples(st.sampled_from(operations), pids, addresses, st.integers(20, 21), st.integers(1, 4), holders),
        max_size=120,
    )


SHORT_LIVES = steps(CREATE, GET, GET, PUT, PUT, PUT, DELETE)
LONG_LIVES = steps(CREATE, *[GET] * 8, *[PUT] * 7)


def rows_of(array: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(row) for row in array.tolist()]


def counted(array: np.ndarray, column: str = "count") -> Counter[tuple[int, ...]]:
    """Return a statistics array as a counter by its three keys."""
    keys = list(array.dtype.names)[:3]
    return Counter({tuple(int(row[key]) for key in keys): int(row[column]) for row in array if row[column]})


@settings(max_examples=300, deadline=None)
@given(SHORT_LIVES | LONG_LIVES, st.integers(1, 40), st.integers(1, 12), st.integers(0, 10**6))
def test_agrees_with_naive_books(taken, buffer_events, batch_rows, seed) -> None:
    kernel = Kernel()
    for step in taken:
        kernel.step(*step)
    random = Random(seed)
    delivered = sorted(kernel.rows, key=lambda row: row[0] + random.randint(0, 60))
    history = History(buffer_events=buffer_events, reorder_ns=60, busy_events=10**6)
    for start in range(0, len(delivered), batch_rows):
        history.add(batch(*delivered[start : start + batch_rows]))

    expected = naive_history(kernel.rows)
    totals = history.type_totals()
    assert rows_of(history.live_events()) == sorted(expected.live)
    assert totals == history.type_totals()
    assert {(t.type, t.pid, t.generation): t for t in totals} == {
        key: TypeTotals(*key, **count) for key, count in expected.totals.items()
    }
    balanced = history.balanced
    assert counted(balanced.pairs) == expected.pairs
    assert counted(balanced.pairs, "exact") == +expected.exact
    assert counted(balanced.deaths) == expected.deaths
    assert rows_of(balanced.lifetimes) == [
        (*key, len(lived), sum(lived), min(lived), max(lived)) for key, lived in sorted(expected.lifetimes.items())
    ]


@settings(max_examples=200, deadline=None)
@given(LONG_LIVES, st.integers(1, 40), st.integers(1, 4))
def test_condensing_changes_no_sum(taken, buffer_events, busy_events) -> None:
    """With one thread and no holders the pairs of a prefix are the pairs of the whole: nothing may differ."""
    kernel = Kernel()
    for operation, pid, address, _, stack, value in taken:
        kernel.step(operation, pid, address, 20, stack, value if operation == CREATE else 0)
    busy = History(buffer_events=buffer_events, reorder_ns=0, busy_events=busy_events)
    whole = History(buffer_events=buffer_events, reorder_ns=0, busy_events=10**6)
    for row in kernel.rows:
        busy.add(batch(row))
        whole.add(batch(row))
    live, kept = whole.live_events(), busy.live_events()
    assert busy.type_totals() == whole.type_totals()
    assert counted(busy.balanced.pairs) == counted(whole.balanced.pairs)
    condensed = busy.condensed()
    for operation, column in ((GET, "get_stack"), (PUT, "put_stack")):
        all_of_them = Counter((e["pid"], e["serial"], e["stack"]) for e in live if e["operation"] == operation)
        left = Counter((e["pid"], e["serial"], e["stack"]) for e in kept if e["operation"] == operation)
        for row in condensed:
            left[row["pid"], row["serial"], row[column]] += int(row["count"])
        assert left == all_of_them


def test_a_busy_live_object_stays_small() -> None:
    history = History(buffer_events=1000, reorder_ns=0, busy_events=100)
    history.add(batch(event(CREATE, 1, 5, stack=1), event(GET, 2, 5, stack=2)))
    for start in range(10, 200_000, 2000):
        pairs = np.zeros(1000, dtype=EVENT)
        pairs[:] = [event(GET, start + 2 * i, 5, stack=3) if i % 2 == 0 else event(PUT, start + 2 * i, 5, stack=4)
                    for i in range(1000)]
        history.add(pairs)
    assert rows_of(history.live_events()) == rows_of(batch(event(CREATE, 1, 5, stack=1), event(GET, 2, 5, stack=2)))
    assert rows_of(history.condensed()) == [(0x1000, 10, 0, 0, 5, 3, 4, 50_000, 0)]
    assert history.type_totals() == (TypeTotals(7, 10, 0, created=1, gets=50_001, puts=50_000),)
    history.add(batch(event(PUT, 10**6, 5, stack=4), event(PUT, 10**6 + 1, 5, stack=6, flags=LAST)))
    assert len(history.live_events()) == 0
    assert len(history.condensed()) == 0
    assert rows_of(history.balanced.pairs) == [(7, 1, 6, 1, 0), (7, 2, 4, 1, 0), (7, 3, 4, 50_000, 0)]


def test_of_too_many_live_events_those_of_the_busiest_objects_become_counts() -> None:
    history, sizes = History(live_events=100), [3, 11, 21, 31, 41, 51]
    rows = [event(CREATE, serial, serial, address=64 * serial) for serial in range(1, 7)]
    for serial, size in enumerate(sizes, start=1):
        rows += [event(GET + i % 2, 9 + i, serial, address=64 * serial, stack=i % 2) for i in range(size - 1)]
    history.add(batch(*rows))
    live, condensed = history.live_events(), history.condensed()
    kept = np.bincount(live["serial"], minlength=7)[1:]
    pairs = dict(zip(condensed["serial"].tolist(), condensed["count"].tolist(), strict=True))
    assert kept.tolist() == [3, 11, 21, 31, 1, 1] and pairs == {5: 20, 6: 25}
    half = sum(size // 2 for size in sizes)
    assert history.type_totals() == (TypeTotals(7, 10, 0, created=6, gets=half, puts=half),)


def test_the_end_of_one_busy_object_leaves_the_others_counts() -> None:
    history = History(buffer_events=1, reorder_ns=0, busy_events=2)
    for serial in (1, 2):
        common = {"address": serial, "tid": 20}
        history.add(batch(event(CREATE, 1, serial, **common)))
        history.add(batch(*(event(GET + i % 2, 2 + i, serial, stack=i % 2, **common) for i in range(46))))
        history.add(batch(event(GET, 99, serial, stack=9, **common)))
    assert history.condensed()["count"].tolist() == [23, 23]
    history.add(batch(*(event(PUT, 100 + i, 1, address=1, flags=LAST * i, stack=8) for i in range(2))))
    assert [event["serial"] for event in history.live_events()] == [2, 2]
    assert rows_of(history.condensed()) == [(2, 10, 0, 0, 2, 0, 1, 23, 0)]
    assert history.type_totals() == (TypeTotals(7, 10, 0, created=2, gets=48, puts=48, destroyed=1),)


def test_a_busy_object_is_condensed_only_where_no_event_may_still_come() -> None:
    history = History(buffer_events=1, reorder_ns=100, busy_events=2)
    history.add(batch(event(CREATE, 1, 1), event(GET, 10, 1, stack=1), event(PUT, 30, 1, stack=3)))
    history.add(batch(event(GET, 20, 1, stack=2), *[event(GET, 40, 1, stack=5)] * 9))
    history.add(batch(*[event(CREATE, 1000, 2, address=0x2000)] * 20))
    pairs = [(int(row["get_stack"]), int(row["put_stack"])) for row in history.condensed()]
    assert pairs == [(2, 3)]


def test_address_reused_by_another_type_is_another_object() -> None:
    history = History(buffer_events=1)
    history.add(batch(event(CREATE, 1, 1, stack=1, value=7), event(PUT, 3, 1, stack=2, flags=LAST)))
    history.add(batch(event(CREATE, 5, 2, stack=3, value=8), event(GET, 6, 2, stack=4)))
    assert history.live_events()["serial"].tolist() == [2, 2]
    assert rows_of(history.balanced.deaths) == [(7, 1, 2, 1)]
    assert rows_of(history.balanced.lifetimes) == [(7, 1, 1, 2, 2, 2)]
    assert history.type_totals() == (
        TypeTotals(7, 10, 0, created=1, puts=1, destroyed=1),
        TypeTotals(8, 10, 0, created=1, gets=1),
    )


def test_one_serial_of_several_processes_groups_and_addresses_is_several_objects() -> None:
    others = [{"pid": 11}, {"generation": 1}, {"group": 3}, {"address": 0x2000}, {}]
    history = History(buffer_events=1, reorder_ns=0)
    history.add(batch(*(event(CREATE, 1 + i, 1, stack=i, **other) for i, other in enumerate(others))))
    history.add(batch(*(event(PUT, 11 + i, 1, flags=LAST, stack=9, **other) for i, other in enumerate(others[:3]))))
    assert history.live_events()["stack"].tolist() == [3, 4]
    assert history.balanced.deaths["create_stack"].tolist() == [0, 1, 2]


def test_a_serial_used_again_at_the_same_address_begins_another_object() -> None:
    history = History()
    history.add(batch(event(CREATE, 1, 1, stack=1), event(PUT, 2, 1, stack=2, flags=LAST)))
    history.add(batch(event(CREATE, 3, 1, stack=3), event(GET, 4, 1, stack=4)))
    assert history.live_events()["stack"].tolist() == [3, 4]
    assert rows_of(history.balanced.deaths) == [(7, 1, 2, 1)]


def test_a_create_at_the_key_of_a_live_object_ends_it() -> None:
    history = History()
    history.add(batch(event(CREATE, 1, 1, stack=1), event(GET, 2, 1, stack=2)))
    history.add(batch(event(CREATE, 3, 2, stack=3, flags=LAST), event(CREATE, 3, 3, stack=4, group=1)))
    assert history.live_events()["stack"].tolist() == [3, 4]
    assert history.type_totals() == (TypeTotals(7, 10, 0, created=3, gets=1, destroyed=1),)
    assert len(history.balanced.deaths) == 0


def test_a_create_with_count_zero_makes_nothing_and_ends_what_was_there() -> None:
    history = History()
    history.add(batch(event(CREATE, 1, 1, stack=1), event(CREATE, 2, 2, stack=2, count=0)))
    assert len(history.live_events()) == 0
    assert history.type_totals() == (TypeTotals(7, 10, 0, created=1, destroyed=1),)


def test_an_end_that_comes_before_the_events_it_follows() -> None:
    history = History(buffer_events=1, reorder_ns=100)
    history.add(batch(event(PUT, 30, 1, stack=3, flags=LAST)))
    history.add(batch(event(PUT, 20, 1, stack=2), event(GET, 15, 1, stack=1)))
    history.add(batch(event(CREATE, 10, 1, stack=5)))
    history.add(batch(event(CREATE, 500, 2, stack=6, address=0x9000)))
    assert history.live_events()["serial"].tolist() == [2]
    assert rows_of(history.balanced.pairs) == [(7, 1, 2, 1, 0), (7, 5, 3, 1, 0)]
    assert rows_of(history.balanced.lifetimes) == [(7, 5, 1, 20, 20, 20)]


def test_an_object_whose_create_was_lost_is_not_kept() -> None:
    history = History()
    history.add(batch(event(GET, 1, 4), event(PUT, 2, 4), event(PUT, 3, 4, flags=LAST)))
    assert len(history.live_events()) == 0
    assert history.type_totals() == (TypeTotals(0, 10, 0, gets=1, puts=2, destroyed=1),)
    assert len(history.balanced.pairs) == 0


def test_a_delete_after_the_end_counts_nothing() -> None:
    history = History()
    history.add(batch(event(CREATE, 1, 1), event(PUT, 2, 1, flags=LAST), event(DELETE, 3, 1), event(DELETE, 4, 0)))
    assert len(history.live_events()) == 0
    assert history.type_totals() == (TypeTotals(7, 10, 0, created=1, puts=1, destroyed=1),)


def test_delete_while_referenced_shows_the_get_that_was_never_put() -> None:
    history = History()
    history.add(batch(event(CREATE, 1, 1, stack=1), event(GET, 2, 1, stack=2)))
    history.add(batch(event(DELETE, 3, 1, stack=3, flags=LAST)))
    assert len(history.live_events()) == 0
    assert rows_of(history.balanced.pairs) == [(7, 2, int(NEVER_PUT), 1, 0)]
    assert rows_of(history.balanced.deaths) == [(7, 1, 3, 1)]


def test_holders_pair_before_threads_and_threads_before_order() -> None:
    history = History()
    history.add(
        batch(
            event(CREATE, 1, 1, stack=1),
            event(GET, 2, 1, stack=2, tid=20, value=77),
            event(GET, 3, 1, stack=3, tid=20),
            event(GET, 4, 1, stack=4, tid=21),
            event(PUT, 5, 1, stack=13, tid=20),
            event(PUT, 6, 1, stack=12, tid=21, value=77),
            event(PUT, 7, 1, stack=14, tid=22),
            event(PUT, 8, 1, stack=11, tid=22, flags=LAST),
        )
    )
    history.live_events()
    assert rows_of(history.balanced.pairs) == [(7, 1, 11, 1, 0), (7, 2, 12, 1, 1), (7, 3, 13, 1, 0), (7, 4, 14, 1, 0)]


def test_unknown_objects_are_counted_by_the_type_they_bring_and_not_kept() -> None:
    history = History()
    history.add(batch(event(GET, 1, 0, flags=UNKNOWN), event(PUT, 2, 9, flags=UNKNOWN, extra=8)))
    assert history.type_totals() == (TypeTotals(0, 10, 0, unknown_gets=1), TypeTotals(8, 10, 0, unknown_puts=1))
    assert len(history.live_events()) == 0


def test_other_operations_are_passed_over() -> None:
    history = History()
    history.add(batch(event(Operation.MAP, 1, 0), event(Operation.UNDO, 2, 0), event(Operation.ALLOC, 3, 5)))
    assert history.type_totals() == ()
    assert history.events_seen == 0
    assert len(history.live_events()) == 0


def test_the_batch_may_be_reused_by_its_owner() -> None:
    history = History()
    ring = batch(event(CREATE, 1, 1, stack=1))
    history.add(ring)
    ring[:] = 0
    assert history.live_events()["stack"].tolist() == [1]


def test_memory_follows_what_is_alive() -> None:
    history = History(buffer_events=1000, reorder_ns=50)
    for serial in range(1, 20_001, 50):
        rows = [
            row
            for s in range(serial, serial + 50)
            for row in (event(CREATE, 10 * s, s, address=s), event(PUT, 10 * s + 5, s, address=s, flags=LAST))
        ]
        history.add(batch(*rows))
        assert history._buffered <= 1000
    assert history.type_totals() == (TypeTotals(7, 10, 0, created=20_000, puts=20_000, destroyed=20_000),)


def test_empty() -> None:
    history = History()
    history.add(np.zeros(0, dtype=EVENT))
    assert len(history.live_events()) == len(history.errors()) == len(history.condensed()) == 0
    assert history.type_totals() == ()
    assert len(history.balanced.pairs) == 0
