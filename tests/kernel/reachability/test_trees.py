"""Objects that live because others of their own type do: below the entries of these."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import Refleak

HERE = Path(__file__).parent
NODES = "node:create=node_new,get=node_get,put=node_put,counter=0"
Told = dict[tuple[str, int], int]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trees") / "trees"
    command = ["gcc", "-O1", "-g", "-fno-builtin", "-Wall", "-o", str(path), str(HERE / "trees.c")]
    subprocess.run(command, check=True, timeout=100)
    return path


def told(refleak: Refleak, program: Path, how: str) -> Told:
    """Return the causes, by who took what was never put and how many objects, with how many each keeps alive."""
    run = refleak("--reachability", "auto", "--no-mappings", "--type", NODES, target=(program, how))
    assert run.report["complete"], run.report["lost"]
    nodes = [leak for leak in run.leaks if leak["kind"] == "reference"]
    causes: Told = {}
    for leak in nodes:
        if leak["cause"] is not None:
            assert leak["kept_alive_by"] is None
            kept = sum(other["count"] for other in nodes if other["kept_alive_by"] == leak["cause"])
            causes[leak["unpaired"][0]["stack"][0]["function"], leak["count"]] = kept
    assert len(causes) == len({leak["cause"] for leak in nodes} - {None})
    return causes


@pytest.mark.parametrize(("how", "causes"), [
    ("lost", {("show", 1): 6, ("save", 1): 3}),
    ("held", {("show", 1): 6, ("save", 1): 3}),
    ("both", {("show", 1): 3, ("save", 1): 2}),
])  # fmt: skip
def test_what_a_leaked_node_has_below_it(refleak: Refleak, program: Path, how: str, causes: Told) -> None:
    assert told(refleak, program, how) == causes


def test_a_node_of_two_trees_is_no_cause(refleak: Refleak, program: Path) -> None:
    """Which of the two it stands below is not said to matter."""
    found = told(refleak, program, "shared")
    assert set(found) == {("show", 1), ("save", 1)}
    assert sorted(found.values()) == [1, 3]


def test_nobody_is_told_to_keep_a_ring_alive(refleak: Refleak, program: Path) -> None:
    assert told(refleak, program, "ring") == {("show", 1): 0, ("tree", 3): 0}
