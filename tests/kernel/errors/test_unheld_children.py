"""What is lost of a child is not lost of its maker. Target: unheld_child.c."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import Refleak
from traced_report import Run, functions

TRIES = 5


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("unheld") / "unheld_child"
    source = Path(__file__).with_name("unheld_child.c")
    subprocess.run(["gcc", "-O1", "-g", "-w", "-fno-builtin", "-o", path, source], check=True, timeout=60)
    return path


def traced(refleak: Refleak, program: Path, who: str) -> Run:
    """Trace until nothing else was lost, as may be beside other load."""
    for turn in range(TRIES):  # equal calls share one run
        options = "--heap-only", "--reachability", "auto"
        run = refleak(*options, target=(program, who), environment=(("TURN", str(turn)),))
        reasons = [lost["reason"].partition(":")[0] for lost in run.report["lost"]]
        assert "child that was not traced from its start" in reasons
        if len(reasons) == 1:
            return run
    raise AssertionError(reasons)


def test_an_error_of_the_maker_is_told(refleak: Refleak, program: Path) -> None:
    """Any loss, of whomever, silenced all errors."""
    (error,) = traced(refleak, program, "maker").report["errors"]
    assert (error["kind"], error["count"]) == ("double-free", 1)
    assert functions(error["stack"])[:2] == ["free_twice", "main"]


def test_nothing_is_told_of_the_child(refleak: Refleak, program: Path) -> None:
    """It may have had blocks that nobody saw."""
    run = traced(refleak, program, "child")
    assert run.report["errors"] == []


def test_what_the_maker_lost_is_lost(refleak: Refleak, program: Path) -> None:
    run = traced(refleak, program, "nobody")
    (leak,) = run.below("lose", "allocation")
    assert (leak["state"], leak["reachability"], leak["count"], leak["bytes"]) == ("leaked", "lost", 1, 77)
