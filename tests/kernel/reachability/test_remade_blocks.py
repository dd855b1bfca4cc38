"""Blocks that forked children hold copies of, freed since by their parent and made again at the same address."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest
from conftest import Refleak

SOURCE = Path(__file__).parent / "remade.c"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("remade") / "remade"
    command = ["gcc", "-O1", "-g", "-fno-builtin", "-Wall", "-o", str(path), str(SOURCE)]
    subprocess.run(command, check=True, timeout=100)
    return path


def test_each_child_keeps_the_copies_that_it_was_forked_with(refleak: Refleak, program: Path) -> None:
    run = refleak("--reachability", "auto", target=(program,))
    assert run.report["complete"], run.report["lost"]
    told: Counter[tuple[str, str]] = Counter()
    for maker in ("make_held", "make_lost"):
        for leak in run.below(maker):
            told[maker, leak["reachability"]] += leak["count"]
    assert told == {("make_held", "reachable"): 5, ("make_lost", "lost"): 5}
    assert run.status == 0
