"""Which freed block a counted object was in."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made import events, objects, snapshot

from tracer.aggregation.freed_counters import FREED_BLOCK, with_freed_counters
from tracer.model.events import COUNTED_EVENT, ErrorKind
from tracer.model.operations import Operation


def freed(**more: int) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    usual = {"address": 0x1000, "size": 64, "time_ns": 50, "pid": 812, "generation": 1, "stack": 1, "release": 7}
    row = np.zeros(1, FREED_BLOCK)
    for name, value in {**usual, **more}.items():
        row[name] = value
    return row


ALIVE = objects({"address": 0x1020, "object": 0x1000, "stack": 3, "time_ns": 10, "serial": 4, "count": 2})


@pytest.mark.parametrize(
    ("more", "is_gone"),
    [
        ({}, True), ({"address": 0x1020}, True), ({"address": 0x1021}, False), ({"size": 32}, False),
        ({"size": 33}, True), ({"time_ns": 10}, False), ({"pid": 813}, False), ({"generation": 2}, False),
        ({"release": 0}, False),
    ],
)  # fmt: skip
def test_the_block_around_the_counter(more: dict[str, int], is_gone: bool) -> None:
    found = with_freed_counters(snapshot(objects=ALIVE), freed(**more))
    assert (len(found.objects), len(found.errors)) == ((0, 1) if is_gone else (1, 0))


@pytest.mark.parametrize(("count", "kind"), [
    (1, ErrorKind.FREED_PAST_COUNTER), (2, ErrorKind.FREED_WHILE_COUNTED), (9, ErrorKind.FREED_WHILE_COUNTED),
])  # fmt: skip
def test_three_stacks(count: int, kind: ErrorKind) -> None:
    alive = ALIVE.copy()
    alive["count"] = count
    history = events(
        {"address": 0x1020, "serial": 4, "operation": Operation.GET, "stack": 5, "time_ns": 20},
        {"address": 0x1020, "serial": 4, "operation": Operation.GET, "stack": 6, "time_ns": 30},
        {"address": 0x1020, "serial": 3, "operation": Operation.GET, "stack": 8, "time_ns": 40},
    )
    (error,) = with_freed_counters(snapshot(objects=alive, history=history), freed()).errors
    assert (error["error"], error.view(COUNTED_EVENT)["count"]) == (kind, count)
    assert (error["stack"], error["birth"], error["release"]) == (7, 3, 6)


def test_the_first_free_after_the_birth_ended_it() -> None:
    blocks = np.concatenate([freed(release=9, time_ns=70), freed(), freed(release=8, time_ns=5)])
    (error,) = with_freed_counters(snapshot(objects=ALIVE), blocks).errors
    assert error["stack"] == 7
