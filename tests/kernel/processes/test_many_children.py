"""Many short children: none may be missed, however fast they come and go."""

from __future__ import annotations

import pytest
from conftest import Refleak
from patience import PATIENCE
from traced_report import HOLD_EXPIRED, Run

UNSEEN = "program that was not traced from its start: its exec was not seen, or is of a kind unknown here"
"""Of a child that went on too early, if it executes one."""
TURNS = 3

pytestmark = pytest.mark.needs("holds")


def check(run: Run, count: int, *, execs: bool) -> None:
    run.check_whole()
    children = [p for p in run.report["processes"][1:] if not p["ended"]["by_exec"]]
    assert len({process["pid"] for process in children}) == count
    assert {process["ended"]["code"] for process in children} == {0}
    assert {tuple(process["command"][1:]) == ("child",) for process in children} == {execs}
    mine = run.below("in_child", "allocation")
    assert sum(leak["count"] for leak in mine) == 3 * count
    assert {leak["state"] for leak in mine} == {"leaked"}
    assert run.blocks[:2] >= (5 * count, 2 * count)


def check_said(run: Run) -> None:
    """A small, busy machine may be too slow to hold back every child: then each that went on early is counted."""
    assert run.report["complete"] is False
    assert run.lost.keys() & {HOLD_EXPIRED}
    assert run.lost.keys() <= {HOLD_EXPIRED, UNSEEN}
    assert all(loss["count"] >= 1 for loss in run.report["lost"])


@pytest.mark.parametrize("at_once", [1, 8])
def test_forked_children(refleak: Refleak, at_once: int) -> None:
    run = refleak(target=("many_children", 200, at_once), timeout=300)
    if run.report["lost"]:
        check_said(run)
        return
    check(run, 200, execs=False)
    assert run.blocks == (1000, 400, 600, 36600)


@pytest.mark.parametrize("at_once", [1, 8])
def test_children_that_exec(refleak: Refleak, at_once: int) -> None:
    run = refleak(target=("many_children", 53, at_once, "exec"), timeout=300)
    if run.report["lost"]:
        check_said(run)
        return
    check(run, 53, execs=True)


def test_rows_of_children_side_by_side(refleak: Refleak) -> None:
    """Forks of several parents at once: no end of one child takes the breakpoints of another away."""
    count = max(5, 20 // PATIENCE)  # an emulated machine takes seconds for each
    for turn in range(TURNS):
        target = "many_children", count, 1, "exec", 4
        run = refleak(target=target, timeout=300, environment=(("TURN", str(turn)),))
        if run.lost.keys() & {HOLD_EXPIRED}:
            check_said(run)
            continue
        run.check_whole()
        assert sum(leak["count"] for leak in run.below("in_child", "allocation")) == 3 * 4 * count
