"""The heap over time: points that are thinned out, and processes that end."""

from __future__ import annotations

import numpy as np
import pytest

from tracer.capture import heap_course
from tracer.capture.heap_course import HeapCourse, Totals
from tracer.model import records

MILLISECOND = 1_000_000


class Heap:
    """Blocks of 16 bytes of some address spaces, as the kernel side counts them."""

    def __init__(self) -> None:
        self.blocks: dict[tuple[int, int], tuple[int, int]] = {}

    def totals(self) -> Totals:
        keys, values = np.zeros(len(self.blocks), records.KEY), np.zeros(len(self.blocks), records.SPACE_TOTALS)
        for row, ((pid, generation), (made, freed)) in enumerate(self.blocks.items()):
            keys["pid"][row], keys["generation"][row] = pid, generation
            values["made"][row], values["made_bytes"][row] = made, made * 16
            values["freed"][row], values["freed_bytes"][row] = freed, freed * 16
        return keys, values


@pytest.fixture
def heap() -> Heap:
    return Heap()


def test_what_living_spaces_have(heap: Heap) -> None:
    course = HeapCourse(heap.totals)
    heap.blocks = {(7, 1): (5, 2), (8, 1): (4, 0), (9, 3): (2, 2)}
    course.look(0, lambda: [(7, 1), (9, 3)])
    assert course.points().tolist() == [(0, 3, 48, 11, 176)]


def test_the_last_point_has_what_those_had_that_just_ended(heap: Heap) -> None:
    course = HeapCourse(heap.totals)
    heap.blocks = {(7, 1): (5, 2), (8, 1): (4, 0)}
    course.look(3, lambda: [(7, 1), (8, 1)])
    course.end(9 * MILLISECOND, lambda since: [(7, 1)] if since == 3 else [])
    assert course.points()["live"].tolist() == [7, 3]


def test_looks_are_some_time_apart(heap: Heap) -> None:
    course = HeapCourse(heap.totals)
    for now in range(0, 9 * MILLISECOND, MILLISECOND):
        course.look(now, list)
    assert len(course.points()) == 1


def test_the_peak_stays_where_points_are_thinned_out(heap: Heap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap_course, "_SHARE", 0)
    course = HeapCourse(heap.totals)
    for index in range(10_000):
        heap.blocks = {(7, 1): (10_000_000 + index, 0 if 5_000 <= index < 5_040 else 9_999_000)}
        course.look(index * heap_course._INTERVAL_NS, lambda: [(7, 1)])
    points = course.points()
    assert 100 < len(points) <= heap_course._MOST_POINTS
    assert points["live"].max() > 10_000_000
    assert (np.diff(points["time_ns"].astype(np.int64)) > 0).all()


def test_frees_of_what_is_older_than_the_trace_make_no_debt(heap: Heap) -> None:
    course = HeapCourse(heap.totals)
    heap.blocks = {(7, 1): (1, 4)}
    course.look(0, lambda: [(7, 1)])
    assert course.points()["live"].tolist() == [0]
