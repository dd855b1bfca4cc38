"""What refleak itself exits with, and that the target keeps its own ways."""

from __future__ import annotations

import pytest
from conftest import Refleak


@pytest.mark.parametrize("way", ["exit", "quick_exit", "_exit"])
def test_the_status_is_the_targets(refleak: Refleak, way: str) -> None:
    run = refleak(target=("quick_exit", way))
    run.check_whole(5)
    assert run.alive("allocation") == [("malloc", "before_exit", 29, 2407)]
    assert run.report["processes"][0]["ended"]["code"] == 5


@pytest.mark.parametrize(("how", "signal"), [("abort", 6), ("segv", 11)])
def test_a_crash(refleak: Refleak, how: str, signal: int) -> None:
    run = refleak(target=("crash", how))
    run.check_whole(128 + signal)
    assert run.alive("allocation") == [("malloc", "before_crash", 19, 1501)]
    assert run.report["processes"][0]["ended"]["signal"] == signal


def test_a_kill(refleak: Refleak) -> None:
    run = refleak(target=("sigkill_self",))
    run.check_whole(128 + 9)
    assert run.alive("allocation") == [("malloc", "before_kill", 23, 1679)]
    assert {frame["function"] for frame in run.leaks[0]["stack"]} >= {"before_kill", "main", "_start"}


@pytest.mark.parametrize("target", [("short",), ("refs_leak",), ("over_put",), ("alloc_functions", "mmap")])
def test_error_exitcode_says_that_something_was_found(refleak: Refleak, target: tuple[str, ...]) -> None:
    assert refleak("--error-exitcode", "99", target=target).status == 99


@pytest.mark.parametrize("target", [("clean", "quiet"), ("zero_init",), ("reinit",)])
def test_error_exitcode_is_not_used_where_nothing_was_found(refleak: Refleak, target: tuple[str, ...]) -> None:
    assert refleak("--error-exitcode", "99", target=target).status == 0


def test_without_error_exitcode_a_leak_is_no_failure(refleak: Refleak) -> None:
    assert refleak(target=("short",)).status == 0


def test_a_short_life_is_traced_whole(refleak: Refleak) -> None:
    run = refleak(target=("short",))
    run.check_whole()
    assert run.alive("allocation") == [("malloc", "leak_and_leave", 31, 4681)]
    assert run.blocks == (31, 0, 31, 4681)
