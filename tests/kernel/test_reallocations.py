"""Each way a realloc can go, 13 times."""

from __future__ import annotations

import pytest
from conftest import Refleak


@pytest.mark.parametrize(
    ("case", "kind", "leaf", "size"),
    [
        ("grow", "realloc", "grow", 100003),
        ("shrink", "realloc", "shrink", 101),
        ("in_place", "realloc", "in_place", 21),
    ],
)
def test_a_realloc_ends_its_old_block(refleak: Refleak, case: str, kind: str, leaf: str, size: int) -> None:
    run = refleak(target=("realloc_cases", case))
    run.check_whole()
    assert run.alive("allocation") == [(kind, leaf, 13, 13 * size)]
    assert run.blocks == (26, 13, 13, 13 * size)


def test_a_realloc_of_null_allocates(refleak: Refleak) -> None:
    run = refleak(target=("realloc_cases", "from_null"))
    run.check_whole()
    assert run.alive("allocation") == [("realloc", "from_null", 13, 13 * 103)]
    assert run.blocks == (13, 0, 13, 13 * 103)


def test_a_realloc_to_zero_frees(refleak: Refleak) -> None:
    run = refleak(target=("realloc_cases", "to_zero"))
    run.check_whole()
    assert (run.leaks, run.blocks) == ([], (13, 13, 0, 0))


@pytest.mark.parametrize(
    ("case", "size", "caller"), [("fail", 109, "fail_realloc"), ("fail_array_overflow", 113, "fail_array_overflow")]
)
def test_a_realloc_that_fails_leaves_the_old_block(refleak: Refleak, case: str, size: int, caller: str) -> None:
    run = refleak(target=("realloc_cases", case))
    run.check_whole()
    assert run.alive("allocation") == [("malloc", "allocate", 13, 13 * size)]
    assert run.leaks[0]["stack"][2]["function"] == caller
    assert run.blocks == (13, 0, 13, 13 * size)
