"""More processes, one after the other, than the maps have room for: nothing is lost, and all is as with more room."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from conftest import Refleak
from traced_report import Run, functions

COUNT = 150

pytestmark = pytest.mark.needs("holds")


def entries(run: Run) -> Counter[Any]:
    """Count blocks by all that an entry says of them but the process."""
    counts: Counter[Any] = Counter()
    for leak in run.leaks:
        if leak["kind"] == "allocation":
            counts[leak["id"], leak["state"], leak["reachability"], leak["suppressed_by"]] += leak["count"]
    return counts


@pytest.fixture(scope="module")
def roomy(refleak: Refleak) -> Run:
    return refleak(target=("generations", COUNT))


def test_generations_are_told_apart(roomy: Run) -> None:
    roomy.check_whole()
    assert roomy.errors == Counter()
    assert sum(leak["count"] for leak in roomy.below("in_child") if leak["state"] == "leaked") == 2 * COUNT
    assert sum(leak["count"] for leak in roomy.below("in_grandchild")) == COUNT
    inherited = [leak for leak in roomy.leaks if leak["state"] == "inherited" and leak["kind"] == "allocation"]
    ours = sum(leak["count"] for leak in inherited if leak["bytes"] in (17, 34, 61))
    assert ours == (2 + 2) * COUNT, "a child frees one of three; a grandchild one more, and one of its parent's two"


@pytest.mark.parametrize("objects", [512, 4096])
def test_all_is_as_with_more_room(refleak: Refleak, roomy: Run, objects: int) -> None:
    """`objects`: with fewer than 4,096 there is no array in front of the map of live blocks."""
    run = refleak("--max-threads", 64, "--max-objects", objects, target=("generations", COUNT))
    run.check_whole()
    assert run.errors == Counter()
    assert len(run.report["processes"]) == len(roomy.report["processes"]) == 1 + 2 * COUNT
    assert run.blocks == roomy.blocks
    assert entries(run) == entries(roomy)


def test_whose_block_it_was_is_known_when_its_maker_has_long_ended(refleak: Refleak) -> None:
    run = refleak("--max-threads", 64, "--max-objects", 512, target=("generations", COUNT, "inside"))
    run.check_whole()
    (error,) = run.report["errors"]
    assert error["kind"] == "invalid-free"
    assert "in_child" in functions(error["created_at"])


def test_more_programs_than_there_is_room_for(refleak: Refleak) -> None:
    run = refleak("--max-threads", 64, "--max-objects", 512, target=("many_children", COUNT, 2, "exec"))
    run.check_whole()
    mine = run.below("in_child", "allocation")
    assert sum(leak["count"] for leak in mine) == 3 * COUNT
    assert {leak["state"] for leak in mine} == {"leaked"}
