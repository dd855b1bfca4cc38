"""The heartbeat beats by the kernel's clock while it runs, and not after."""

from __future__ import annotations

import os
import time

import numpy as np
import numpy.typing as npt

from tracer.kernel.heartbeat import Heartbeat
from tracer.model import records


def last_beat(shared: npt.NDArray[np.void]) -> int:
    return int(shared["heartbeat_ns"][0])


def test_it_beats_from_its_start_to_its_end() -> None:
    shared = np.zeros(1, records.SHARED)
    heart = Heartbeat(shared)
    before = time.monotonic_ns()
    heart.start()
    first = last_beat(shared)
    assert before <= first <= time.monotonic_ns()
    assert shared["tracer"][0] == os.getpid()
    deadline = time.monotonic() + 60
    while last_beat(shared) == first:
        assert time.monotonic() < deadline
    heart.stop()
    last = last_beat(shared)
    assert first < last <= time.monotonic_ns()


def test_it_may_end_before_it_starts() -> None:
    Heartbeat(np.zeros(1, records.SHARED)).stop()
