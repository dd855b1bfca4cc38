"""Live blocks read from the front of their map: all that are there, and none half written."""

from __future__ import annotations

import mmap
import os
import signal
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from tracer.kernel.fronts import read_live_front, take_from_live_front
from tracer.kernel.kernel_records import BLOCK_SET, BLOCK_WAYS
from tracer.kernel.maps import Maps
from tracer.model import records
from tracer.model.addresses import space_numbers

SETS = 64
READINGS = 300


@pytest.fixture
def front() -> Iterator[Any]:
    fd = os.memfd_create("front")
    os.ftruncate(fd, SETS * BLOCK_SET.itemsize)
    memory = mmap.mmap(fd, SETS * BLOCK_SET.itemsize)
    maps = cast(Maps, SimpleNamespace(fds={"LIVE_FRONT": fd}, entries={"LIVE_FRONT": SETS}))
    yield maps, np.frombuffer(memory, BLOCK_SET)
    os.close(fd)


def put(sets: np.ndarray[Any, np.dtype[np.void]], at: int, way: int, number: int) -> None:
    """Write a block as the kernel side does: its address comes last."""
    sets["address"][at, way] = 0
    sets["owner"][at, way] = 7 << 48 | 3 << 32 | number
    for name in ("size", "time_ns", "stack", "tid"):
        sets["block"][name][at, way] = number
    sets["address"][at, way] = number


def test_an_empty_front_has_no_blocks(front: Any) -> None:
    keys, blocks = read_live_front(front[0])
    assert len(keys) == len(blocks) == 0


def test_each_part_of_a_block_is_told(front: Any) -> None:
    maps, sets = front
    put(sets, 0, 0, 16)
    put(sets, SETS - 1, BLOCK_WAYS - 1, 32)
    sets["is_taken"][5, 1], sets["block"]["size"][5, 1] = 1, 99  # its address is still to come
    keys, blocks = read_live_front(maps)
    assert sorted(keys.tolist()) == [(16, 16, 3, 7), (32, 32, 3, 7)]
    assert sorted(blocks["size"].tolist()) == sorted(blocks["stack"].tolist()) == [16, 32]


def test_no_block_is_read_half_written(front: Any) -> None:
    maps, sets = front
    for number in range(SETS * BLOCK_WAYS):
        put(sets, number % SETS, number // SETS, number + 1)
    writer = os.fork()
    if not writer:
        random = np.random.default_rng(1)
        while True:
            put(sets, int(random.integers(SETS)), int(random.integers(BLOCK_WAYS)), int(random.integers(1, 1 << 31)))
    try:
        seen = 0
        for _ in range(READINGS):
            keys, blocks = read_live_front(maps)
            seen += len(keys)
            assert (keys["address"] == keys["pid"]).all()
            for name in ("size", "time_ns", "stack", "tid"):
                assert (keys["address"] == blocks[name]).all()
        assert seen > READINGS * SETS
    finally:
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)


def test_blocks_of_those_that_ended_are_taken_out(front: Any) -> None:
    maps, sets = front
    for number in range(16, 24):
        put(sets, number // BLOCK_WAYS, number % BLOCK_WAYS, number)
        sets["is_taken"][sets["address"] == number] = 1
    ended = space_numbers(np.array([(0, pid, 3, 0) for pid in (17, 18, 99)], records.KEY))
    before = int((sets["address"] != 0).sum())
    keys, blocks = take_from_live_front(maps, np.sort(ended))
    assert sorted(keys["pid"].tolist()) == sorted(blocks["tid"].tolist()) == [17, 18]
    assert sorted(read_live_front(maps)[0]["pid"].tolist()) == [16, 19, 20, 21, 22, 23]
    assert int((sets["address"] != 0).sum()) == int(sets["is_taken"].sum()) == before - 2
    assert len(take_from_live_front(maps, np.sort(ended))[0]) == 0


def test_another_space_of_a_pid_keeps_its_blocks(front: Any) -> None:
    maps, sets = front
    put(sets, 0, 0, 16)
    other = space_numbers(np.array([(0, 16, 2, 0)], records.KEY))
    assert len(take_from_live_front(maps, other)[0]) == 0
    assert len(read_live_front(maps)[0]) == 1
