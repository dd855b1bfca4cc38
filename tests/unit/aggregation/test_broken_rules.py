"""Errors are counted exactly, and kept in a sample that stays small."""

from __future__ import annotations

from naive_history import batch, event

from tracer.aggregation.history import History
from tracer.model.events import ErrorKind
from tracer.model.operations import Operation


def error(time_ns: int, kind: ErrorKind = ErrorKind.OVER_PUT, stack: int = 1, birth: int = 2, **fields: int) -> tuple:
    return event(Operation.ERROR, time_ns, 3, flags=kind, stack=stack, value=birth, object=5, extra=7, **fields)


def test_alike_errors_keep_the_earliest_and_count_all() -> None:
    history = History()
    for start in (100, 0):
        history.add(batch(*(error(start + i) for i in range(53))))
    history.add(batch(error(7, stack=9)))
    errors = history.errors()
    assert errors["time_ns"].tolist() == [0, 1, 2, 3, 7]
    assert errors["represented"].tolist() == [103, 1, 1, 1, 1]
    assert history.error_counts().tolist() == [(1, 7, 10, 0, 1, 2, 5, 106), (1, 7, 10, 0, 9, 2, 5, 1)]
    assert history.type_totals() == ()


def test_each_part_of_the_key_tells_errors_apart() -> None:
    history = History()
    history.add(
        batch(error(1), error(2, ErrorKind.USE_AFTER_ZERO), error(3, stack=8), error(4, birth=8), error(5, pid=11))
    )
    assert history.error_counts()["count"].tolist() == [1] * 5
    assert history.errors()["represented"].tolist() == [1] * 5


def test_the_sample_is_bounded_however_many_come() -> None:
    history = History()
    for start in range(0, 10_000, 1000):
        history.add(batch(*(error(start + i) for i in range(1000))))
        assert len(history.errors()) == 4
    assert int(history.errors()["represented"].sum()) == 10_000
