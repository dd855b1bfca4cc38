"""Libraries that come and go: each leak belongs to the library whose code it was, at whatever address that stood."""

from __future__ import annotations

import pytest
from conftest import Refleak
from traced_report import Run, callers

pytestmark = pytest.mark.needs("holds")


def blocks_below(run: Run, function: str, loader: str) -> tuple[int, int]:
    found = [
        leak for leak in run.below(function, "allocation") if loader in {frame["function"] for frame in callers(leak)}
    ]
    assert {callers(leak)[0]["function"] for leak in found} == {function}
    assert {leak["stack_status"] for leak in found} == {"complete"}
    return sum(leak["count"] for leak in found), sum(leak["bytes"] for leak in found)


def test_two_libraries_at_one_address(refleak: Refleak) -> None:
    run = refleak(target=("dlopen_sequence",))
    run.check_whole()
    assert "same address" in run.stdout
    assert blocks_below(run, "leak_in_a", "load_a_first") == (13, 1157)
    assert blocks_below(run, "leak_in_b", "load_b") == (17, 1649)
    assert blocks_below(run, "leak_in_a", "load_a_again") == (13, 1157)
    modules = {callers(leak)[0]["module"] for leak in run.below("leak_in_b", "allocation")}
    assert modules == {"libb.so"}
