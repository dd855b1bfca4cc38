"""The courses of ended objects, and the histories of those that were put too often."""

from __future__ import annotations

import numpy as np
from naive_history import CREATE, DELETE, GET, PUT, batch, event

from tracer.aggregation.courses import Courses
from tracer.aggregation.history import History
from tracer.model.events import ErrorKind, EventFlag
from tracer.model.operations import Operation
from tracer.model.snapshot import Records

LAST = EventFlag.LAST


def one(serial: int, *steps: tuple[Operation, int], type_: int = 7) -> list[tuple[int, ...]]:
    """Return the events of an object: (operation, stack) each; the last one ends it."""
    return [
        event(
            operation, 1000 * serial + place, serial, address=64 * serial, stack=stack,
            flags=LAST if place == len(steps) - 1 else 0, **({"value": type_} if operation == CREATE else {}),
        )
        for place, (operation, stack) in enumerate(steps)
    ]  # fmt: skip


def rows_of(steps: Records) -> list[tuple[int, ...]]:
    return [tuple(row) for row in steps[["course", "operation", "stack", "count", "type", "objects"]].tolist()]


def test_alike_objects_share_a_course() -> None:
    history = History()
    for serial in (1, 2, 3):
        history.add(batch(*one(serial, (CREATE, 11), (GET, 12), (PUT, 13), (PUT, 14))))
    history.add(batch(*one(4, (CREATE, 11), (DELETE, 15))))
    history.live_events()
    assert rows_of(history.balanced.courses) == [
        (0, CREATE, 11, 1, 7, 3), (0, GET, 12, 1, 7, 3), (0, PUT, 13, 1, 7, 3), (0, PUT, 14, 1, 7, 3),
        (1, CREATE, 11, 1, 7, 1), (1, DELETE, 15, 1, 7, 1),
    ]  # fmt: skip


def test_order_and_type_tell_courses_apart() -> None:
    history = History()
    history.add(batch(*one(1, (CREATE, 1), (GET, 2), (PUT, 3), (GET, 2), (PUT, 3), (PUT, 4))))
    history.add(batch(*one(2, (CREATE, 1), (GET, 2), (GET, 2), (PUT, 3), (PUT, 3), (PUT, 4))))
    history.add(batch(*one(3, (CREATE, 1), (GET, 2), (GET, 2), (PUT, 3), (PUT, 3), (PUT, 4), type_=8)))
    history.live_events()
    assert len(np.unique(history.balanced.courses["course"])) == 3


def fold(courses: Courses, rows: list[tuple[int, ...]]) -> None:
    events = batch(*rows)
    owner = np.cumsum(events["operation"] == CREATE) - 1
    create = np.flatnonzero(events["operation"] == CREATE)
    courses.fold(events, owner, create, np.ones(len(create), dtype=bool))


def test_courses_are_bounded_and_known_ones_still_counted() -> None:
    courses = Courses(most_steps=3, most_of_type=2, most=3)
    for stack in (1, 2, 3, 1):
        fold(courses, one(stack, (CREATE, stack), (PUT, 9)))
    fold(courses, one(5, (CREATE, 5), (PUT, 9), type_=8) + one(6, (CREATE, 6), (PUT, 9), type_=8))
    fold(courses, one(7, (CREATE, 7), (GET, 1), (PUT, 2), (PUT, 9), type_=9))
    assert rows_of(courses.rows())[::2] == [(0, CREATE, 1, 1, 7, 2), (1, CREATE, 2, 1, 7, 1), (2, CREATE, 5, 1, 8, 1)]


def test_an_object_put_too_often_keeps_its_history_and_is_no_example() -> None:
    history = History()
    history.add(batch(*one(1, (CREATE, 1), (GET, 2), (PUT, 3), (PUT, 4)), *one(2, (CREATE, 1), (PUT, 4))))
    history.add(batch(event(Operation.ERROR, 5000, 1, address=64, flags=ErrorKind.OVER_PUT, stack=4)))
    history.live_events()
    assert [(row["serial"], row["stack"]) for row in history.error_history()] == [(1, 1), (1, 2), (1, 3), (1, 4)]
    assert rows_of(history.balanced.courses) == [(0, CREATE, 1, 1, 7, 1), (0, PUT, 4, 1, 7, 1)]
