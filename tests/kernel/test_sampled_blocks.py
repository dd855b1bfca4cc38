"""--sample-bytes, --min-size, --max-size, --older: what is kept, and what is said of it. Numbers: targets/README.md."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from conftest import Refleak
from traced_report import Run, callers

N = 8192
SIZES: dict[str, Sequence[int]] = {
    "leak_small": [48] * 100003,
    "leak_mixed": [1 + i * 7919 % 4096 for i in range(20011)],
    "leak_calloc": [200] * 3001,
    "leak_reallocated": [400] * 10007,
}
MADE = 100003 + 20011 + 3001 + 2 * 10007 + 2 * 30011 + 5
FREED = 10007 + 2 * 30011
SIGMAS = 7
"""Missed by chance once in 10^11 runs, or 10^9 where few blocks are drawn."""


def check_sampled(run: Run) -> None:
    assert (run.status, run.report["lost"], run.report["complete"]) == (0, [], False), run.stderr
    assert (run.report["errors"], run.report["notes"]) == ([], [])


@pytest.mark.parametrize("function", SIZES)
def test_estimates_are_near_the_truth(refleak: Refleak, function: str) -> None:
    run = refleak("--sample-bytes", N, target=("sampled",))
    check_sampled(run)
    [leak] = run.below(function)
    sizes = SIZES[function]
    odds = [(size, -math.expm1(-size / N)) for size in sizes]
    estimated = leak["estimated"]
    for what, truth, worth in (("count", len(sizes), lambda size: 1), ("bytes", sum(sizes), lambda size: size)):
        sigma = math.sqrt(sum(worth(size) ** 2 * (1 - p) / p for size, p in odds))
        # A block of a few bytes that is drawn counts for thousands: once in 50 runs it makes a mixed count that uneven.
        uneven = function == "leak_mixed" and what == "count"
        assert abs(estimated[what] - truth) < (20 if uneven else SIGMAS) * sigma
        assert 0.5 * sigma < estimated[f"{what}_error"] < (20 if uneven else 2) * sigma
    drawn = sum(p for _, p in odds)
    assert abs(leak["count"] - drawn) < SIGMAS * math.sqrt(drawn)
    assert set(sizes) >= {leak["size_min"], leak["size_max"]}


def test_blocks_much_larger_than_the_distance_are_all_drawn(refleak: Refleak) -> None:
    [leak] = refleak("--sample-bytes", N, target=("sampled",)).below("leak_big")
    assert (leak["count"], leak["bytes"]) == (5, 5 << 20)
    assert leak["estimated"] == {"count": 5, "bytes": 5 << 20, "count_error": 0, "bytes_error": 0}


def test_what_is_made_and_freed_is_counted_without_sampling(refleak: Refleak) -> None:
    run = refleak("--sample-bytes", N, target=("sampled",))
    assert run.blocks[:2] == (MADE, FREED)
    drawn = sum(leak["count"] for leak in run.leaks)
    assert run.blocks[2] == drawn < 20000


def test_a_distance_of_one_byte_draws_all(refleak: Refleak) -> None:
    """Of blocks of 37 bytes and more: each is missed with a probability of 10^-16."""
    run = refleak("--sample-bytes", 1, target=("fork_no_exec",))
    check_sampled(run)
    parent, child = (process["pid"] for process in run.report["processes"])
    assert sorted((leak["pid"] == child, leak["state"], leak["count"], leak["bytes"]) for leak in run.leaks) == [
        (False, "leaked", 11, 407), (True, "inherited", 8, 296), (True, "leaked", 7, 287),
    ]  # fmt: skip
    assert run.blocks == (20, 2 + 5, 18, 694)  # the 5 copies that the child frees could be blocks that were not drawn
    assert parent != child


def test_blocks_freed_by_other_threads(refleak: Refleak) -> None:
    run = refleak("--sample-bytes", 1, target=("threads",))
    check_sampled(run)
    [leak] = run.below("allocate_in_thread", "allocation")
    assert (leak["count"], leak["bytes"]) == (31, 31 * 67)


def test_only_sizes_that_are_wanted_are_kept(refleak: Refleak) -> None:
    run = refleak("--min-size", 200, "--max-size", "4K", target=("sampled",))
    run.check_whole()
    wanted = [size for size in SIZES["leak_mixed"] if 200 <= size <= 4096]
    kept = [("leak_calloc", 3001, 3001 * 200), ("leak_mixed", len(wanted), sum(wanted)),
            ("leak_reallocated", 10007, 10007 * 400)]  # fmt: skip
    assert sorted((callers(leak)[0]["function"], leak["count"], leak["bytes"]) for leak in run.leaks) == kept
    assert run.blocks[:2] == (MADE, FREED)
    assert (run.report["errors"], run.report["notes"]) == ([], [])
    assert run.report["only"] == {"min_size": 200, "max_size": 4096, "older_ns": 0}
    assert {leak["estimated"] for leak in run.leaks} == {None}


def test_what_a_child_frees_of_a_size_that_is_not_kept_is_no_error(refleak: Refleak) -> None:
    run = refleak("--min-size", 40, target=("fork_no_exec",))
    run.check_whole()
    [leak] = run.leaks
    assert (leak["state"], leak["count"], leak["bytes"]) == ("leaked", 7, 287)
    assert (run.report["errors"], run.report["notes"]) == ([], [])


@pytest.mark.parametrize(("case", "count"), [("grow", 13), ("shrink", 0), ("fail", 0), ("from_null", 0)])
def test_a_realloc_into_or_out_of_what_is_kept(refleak: Refleak, case: str, count: int) -> None:
    run = refleak("--min-size", 500, "--no-mappings", target=("realloc_cases", case))
    run.check_whole()
    assert sum(leak["count"] for leak in run.leaks) == count
    assert (run.report["errors"], run.report["notes"]) == ([], [])


@pytest.mark.parametrize("case", ["grow", "shrink", "in_place", "from_null", "to_zero", "fail"])
def test_reallocs_are_the_same_where_all_are_drawn(refleak: Refleak, case: str) -> None:
    whole = refleak(target=("realloc_cases", case))
    sampled = refleak("--sample-bytes", 1, target=("realloc_cases", case))
    check_sampled(sampled)
    assert sampled.alive("allocation") == whole.alive("allocation")
    assert sampled.blocks == whole.blocks


def test_references_are_not_sampled(refleak: Refleak) -> None:
    whole = refleak(target=("refs_leak",))
    sampled = refleak("--sample-bytes", "1G", target=("refs_leak",))
    assert sampled.types == whole.types
    assert sampled.alive("reference") == whole.alive("reference")


def test_only_what_is_old_is_listed(refleak: Refleak) -> None:
    run = refleak("--older", "1h", target=("sampled",))
    run.check_whole()
    assert run.leaks == []
    assert run.blocks[2] == MADE - FREED
    assert len(refleak("--older", "1ms", "--max-size", 48, target=("sampled",)).below("leak_small")) == 1
