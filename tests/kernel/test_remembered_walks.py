"""Walks that are remembered in places that all threads share: each block has the stack that it was made by."""

from __future__ import annotations

import pytest
from conftest import Refleak
from traced_report import callers

THREADS, WAYS, CALLS = 6, 40_000, 5
DIGITS = {"a": 0, "b": 1, "c": 2}


def test_blocks_of_many_threads_have_their_own_stacks(refleak: Refleak) -> None:
    run = refleak("--reachability", "off", target=("paths_in_threads",), timeout=120)
    run.check_whole()
    kept, ways = 0, set()
    for leak in run.leaks:
        names = [frame["function"] for frame in callers(leak)]
        if "leaf" not in names:
            continue
        way = [DIGITS[name] for name in reversed(names) if name in DIGITS]
        number = int("".join(map(str, way)), 3)
        assert len(way) == CALLS
        assert leak["bytes"] == leak["count"] * (1000 + number), names
        kept += leak["count"]
        ways.add(number)
    assert len(ways) == 3**CALLS
    assert 0.8 < kept / (THREADS * WAYS / 64) < 1.2


@pytest.mark.parametrize("frames", [1, 15, 50, 99])
def test_stacks_that_differ_in_two_words(refleak: Refleak, frames: int) -> None:
    """Wherever these are: some are compared in line, others not."""
    run = refleak("--reachability", "off", target=("far_callers", frames))
    run.check_whole()
    found = {}
    for leak in run.below("leak_at_bottom"):
        names = [frame["function"] for frame in callers(leak)]
        assert (names.count("descend"), names.count("come_down")) == (frames, 101 - frames)
        found[names[frames + 1]] = leak["count"], leak["bytes"]
    assert found == {"first": (50, 50 * 1003), "second": (50, 50 * 1005)}
