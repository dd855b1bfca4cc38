"""What is lost where a program executes another one, and what is not told of it."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest
from conftest import Refleak
from traced_report import Run

HERE = Path(__file__).parent
Told = dict[str | None, int]
"""Blocks by class."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("executes") / "executes"
    command = ["gcc", "-O1", "-g", "-fno-builtin", "-Wall", "-o", str(path), str(HERE / "executes.c")]
    subprocess.run(command, check=True, timeout=100)
    return path


def told(run: Run, maker: str, state: str = "alive-at-exec") -> Told:
    assert run.report["complete"], run.report["lost"]
    assert {leak["state"] for leak in run.below(maker)} <= {state}
    found: Counter[str | None] = Counter()
    for leak in run.below(maker):
        found[leak["reachability"]] += leak["count"]
    return dict(found)


def test_what_was_alive_at_an_exec_is_classed(refleak: Refleak, program: Path) -> None:
    """The new program's arguments are in the registers of the thread that executes it."""
    run = refleak("--reachability", "auto", "--fail-on", "leaks", target=(program, "true"))
    assert told(run, "make_lost") == {"lost": 2}
    assert told(run, "make_held") == {"reachable": 1}
    assert told(run, "make_arguments") == {"reachable": 2}
    assert run.report["scans"][0]["looked_into"]
    assert run.status == 0  # what was alive at an exec fails no run


def test_an_exec_that_fails_is_no_end(refleak: Refleak, program: Path) -> None:
    run = refleak("--reachability", "auto", target=(program, "nothing"))
    assert told(run, "make_lost", "leaked") == {"lost": 3}
    assert told(run, "make_held", "leaked") == {"reachable": 1}


def test_children_that_execute_a_program_are_not_looked_into(refleak: Refleak, program: Path) -> None:
    run = refleak("--reachability", "auto", target=(program, "child"))
    of_child = [leak for leak in run.below("make_lost") if leak["state"] == "alive-at-exec"]
    assert {leak["reachability_reason"] for leak in of_child} <= {"it executed another program"}
    if run.report["complete"]:  # no time was given to it: then it may have no probes
        assert told(run, "make_lost") == {None: 2}


def test_without_reachability_nobody_is_read(refleak: Refleak, program: Path) -> None:
    run = refleak(target=(program, "true"))
    assert told(run, "make_lost") == {None: 2}
    assert run.report["scans"] == []
