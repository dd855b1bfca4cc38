"""Children of a process that has made many: they have their probes by events, and lose none."""

from __future__ import annotations

import pytest
from conftest import Refleak
from traced_report import HOLD_EXPIRED, NOT_HELD, Run

pytestmark = pytest.mark.needs("holds")


def made(run: Run, function: str = "in_child") -> int:
    return sum(leak["count"] for leak in run.below(function, "allocation"))


def losses(run: Run) -> set[str]:
    return {loss["reason"] for loss in run.report["lost"]}


@pytest.mark.parametrize(("how", "blocks", "turns"), [("spawns", 84, 0), ("outlives", 7, 40), ("races", 7, 20000)])
def test_nothing_is_missed(refleak: Refleak, how: str, blocks: int, turns: int) -> None:
    run = refleak("--show", "all", target=("late_children", how), timeout=300)
    if not run.report["lost"]:
        assert made(run) == blocks
        assert run.blocks[1] - turns in (0, 1)  # pthread_exit loads a library
    assert losses(run) <= {HOLD_EXPIRED}


def test_a_program_is_executed_by_another_thread(refleak: Refleak) -> None:
    run = refleak("--show", "all", target=("late_children", "executes"), timeout=300)
    assert made(run) == 7 or run.report["lost"]


def test_a_vfork_child_has_the_probes_of_its_maker(refleak: Refleak) -> None:
    run = refleak("--show", "all", target=("late_children", "vforks"), timeout=300)
    if not run.report["lost"]:
        assert made(run) == 7
        assert run.blocks[:2] == (14, 2)
    assert losses(run) <= {HOLD_EXPIRED}


def test_a_child_made_past_libc_is_held(refleak: Refleak) -> None:
    run = refleak("--show", "all", target=("late_children", "raw"), timeout=300)
    assert losses(run) <= {HOLD_EXPIRED}
    assert made(run) == 7


def test_a_child_that_was_not_held_has_its_probes_later(refleak: Refleak) -> None:
    run = refleak("--show", "all", target=("late_children", "unforeseen"), timeout=300)
    assert NOT_HELD in losses(run)
    assert made(run) == 7
