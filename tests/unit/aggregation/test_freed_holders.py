"""Blocks that were freed with a counted object in them, put together with the puts of that object."""

from __future__ import annotations

import pytest
from naive_history import CREATE, GET, PUT, batch, event

from tracer.aggregation.history import History
from tracer.model.events import EventFlag
from tracer.model.operations import Operation
from tracer.model.statistics import NEVER_PUT

LAST, NEVER = EventFlag.LAST, int(NEVER_PUT)


def freed(time_ns: int, serial: int, stack: int, tid: int = 10) -> tuple[int, ...]:
    """Return the free of a block of 64 bytes, made at stack 900, in which the object stands at 8."""
    return event(
        Operation.HOLDER_FREED, time_ns, serial, stack=stack, value=900, count_read=8, count=64, tid=tid
    )  # fmt: skip


def rows(history: History) -> list[tuple[int, ...]]:
    """Return serial, address, stack of the free, stack of the put and count of each row."""
    history.live_events()
    found = history.freed_holders()
    assert found[["offset", "size", "type", "made"]].tolist() == [(8, 64, 7, 900)] * len(found)
    return [tuple(row) for row in found[["serial", "address", "freed", "put", "count"]].tolist()]


LIFE = (event(CREATE, 1, 5, stack=1), event(GET, 2, 5, stack=2), event(GET, 3, 5, stack=2))


@pytest.mark.parametrize("buffer_events", [1, 100])
def test_those_of_an_object_that_is_left_have_its_identity(buffer_events: int) -> None:
    history = History(buffer_events=buffer_events, reorder_ns=10)
    history.add(batch(*LIFE, event(PUT, 4, 5, stack=3), freed(5, 5, 50), freed(60, 5, 50)))
    history.add(batch(event(GET, 70, 5, stack=4), freed(71, 5, 51)))
    assert rows(history) == [(5, 0x1000, 50, 3, 2), (5, 0x1000, 51, 3, 1)]
    assert rows(history) == [(5, 0x1000, 50, 3, 2), (5, 0x1000, 51, 3, 1)]


@pytest.mark.parametrize("buffer_events", [1, 100])
def test_those_of_objects_that_ended_are_summed_up(buffer_events: int) -> None:
    history = History(buffer_events=buffer_events, reorder_ns=10)
    for serial in (5, 6):
        start = 100 * serial
        history.add(batch(
            event(CREATE, start, serial, stack=1), event(GET, start + 1, serial, stack=2),
            event(PUT, start + 2, serial, stack=3), freed(start + 3, serial, 50),
        ))  # fmt: skip
        history.add(batch(event(PUT, start + 50, serial, stack=4, flags=LAST)))
    assert rows(history) == [(0, 0, 50, 3, 2)]


def test_a_put_of_another_thread_or_object_does_not_go_with_it() -> None:
    history = History()
    history.add(batch(
        *LIFE, event(CREATE, 4, 6, stack=1, address=0x2000), event(PUT, 5, 5, stack=3, tid=11),
        event(PUT, 6, 6, stack=3, address=0x2000, flags=LAST), freed(7, 5, 50), event(PUT, 8, 5, stack=3),
    ))  # fmt: skip
    assert rows(history) == [(5, 0x1000, 50, NEVER, 1)]


def test_what_was_never_seen_to_begin_is_forgotten() -> None:
    history = History()
    history.add(batch(event(GET, 1, 5, stack=2), freed(2, 5, 50), freed(3, 9, 50)))
    assert rows(history) == []


def test_what_lost_its_end_is_forgotten() -> None:
    history = History(buffer_events=1, reorder_ns=0)
    history.add(batch(*LIFE, freed(4, 5, 50)))
    assert rows(history) == [(5, 0x1000, 50, NEVER, 1)]
    history.add(batch(event(CREATE, 20, 6, stack=1)))  # at the same address
    assert rows(history) == []


def test_many_are_taken_in_where_no_other_events_come() -> None:
    """One object that all blocks of a program point at."""
    history = History(buffer_events=100, reorder_ns=10)
    history.add(batch(*LIFE))
    for start in range(100, 10_000, 10):
        history.add(batch(*(freed(start + number, 5, 50) for number in range(10))))
        assert history._freed_holders.waiting < 120
    assert rows(history) == [(5, 0x1000, 50, NEVER, 9_900)]
