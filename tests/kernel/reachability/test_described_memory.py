"""Memory of allocators that a spec calls a root, or of which it says that it hides pointers."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest
from conftest import Refleak
from traced_report import Run, callers, functions

HERE = Path(__file__).parent
POOL = "alloc pool:alloc=pool_alloc(size=arg0)"
COUNT = 3
MAKERS = ("make_held", "make_lost", "pool_alloc", "fill")
Classes = dict[str, dict[str, int]]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pools") / "pools"
    command = ["gcc", "-O1", "-g", "-fno-builtin", "-Wall", "-o", str(path), str(HERE / "pools.c")]
    subprocess.run(command, check=True, timeout=100)
    return path


def classes(run: Run) -> Classes:
    """Return how many blocks of each class each maker made; the pool itself is what fill() made by malloc."""
    assert run.report["complete"], run.report["lost"]
    found: dict[str, Counter[str]] = {}
    for leak in run.leaks:
        names = functions(callers(leak))
        made = "pool_alloc" if leak["type"] == "pool" else next((name for name in MAKERS if name in names), None)
        if made is not None:
            found.setdefault(made, Counter())[leak["reachability"]] += leak["count"]
    return {made: dict(counts) for made, counts in found.items()}


@pytest.mark.parametrize(("how", "memory", "held", "lost", "kept", "pool"), [
    ("numbered", "", "indirect", "lost", 0, "indirect"),
    ("numbered", ",memory=root", "reachable", "lost", 3, "reachable"),
    ("hidden", "", "lost", "lost", 1, "reachable"),
    ("hidden", ",memory=hides", "reachable", "reachable", 3, "reachable"),
    ("adrift", ",memory=hides", "lost", "lost", 0, "indirect"),
    ("adrift", ",memory=root+hides", "reachable", "reachable", 3, "reachable"),
])  # fmt: skip
def test_what_a_spec_says_of_a_pool(
    refleak: Refleak, program: Path, how: str, memory: str, held: str, lost: str, kept: int, pool: str
) -> None:
    run = refleak("--reachability", "auto", "--type", POOL + memory, target=(program, how))
    blocks = Counter({"reachable": kept, "lost": COUNT - kept})
    assert classes(run) == {
        "make_held": {held: COUNT}, "make_lost": {lost: 1}, "pool_alloc": dict(+blocks), "fill": {pool: 1},
    }  # fmt: skip


def test_a_pool_and_its_first_block_begin_at_one_address(refleak: Refleak, program: Path) -> None:
    run = refleak("--reachability", "auto", "--type", POOL, target=(program, "second"))
    assert classes(run) == {
        "make_held": {"reachable": 1, "indirect": 2}, "make_lost": {"lost": 1}, "fill": {"reachable": 1},
        "pool_alloc": {"reachable": 1, "lost": 2},
    }  # fmt: skip
    (below,) = (leak for leak in run.below("make_held") if leak["reachability"] == "indirect")
    assert [leak["type"] for leak in run.leaks if leak["id"] == below["owner"]][:1] == ["pool"]


def test_the_reasons_are_the_specs(refleak: Refleak, program: Path) -> None:
    run = refleak("--reachability", "auto", "--type", POOL + ",memory=root", target=(program, "numbered"))
    assert {leak["reachability_reason"] for leak in run.below("make_held")} == {
        "held by memory that a spec calls a root"
    }  # fmt: skip
    run = refleak("--reachability", "auto", "--type", POOL + ",memory=hides", target=(program, "hidden"))
    assert {leak["reachability_reason"] for leak in run.below("make_lost")} == {"held by perhaps a hidden pointer"}
