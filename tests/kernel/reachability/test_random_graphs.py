"""Classes of random graphs of blocks, as they were made and as memcheck has them.

Some; as many as REFLEAK_RANDOM_GRAPHS says, from the seed REFLEAK_FIRST_SEED on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from conftest import Refleak
from random_graphs import BLOCKS, FIRST, ROOTS, Graph, random_graph
from test_shapes import Classes, memcheck, told, traced

HERE = Path(__file__).parent
START = int(os.environ.get("REFLEAK_FIRST_SEED", "1"))
SEEDS = range(START, START + int(os.environ.get("REFLEAK_RANDOM_GRAPHS", "3")))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graphs")
    made = {"graphs": [], "arenas": ["-DARENAS"], "library.so": ["-DLIBRARY", "-shared", "-fPIC"]}
    for name, options in made.items():
        command = ["gcc", "-O1", "-g", "-fno-builtin", "-pthread", "-w", *options, "-o", str(folder / name)]
        subprocess.run([*command, str(HERE / "graphs.c")], check=True, timeout=100)
    return folder


def by_component(graph: Graph, found: Classes) -> Counter[tuple[str, int]]:
    named: Counter[tuple[str, int]] = Counter()
    for (word, maker), count in found.items():
        named[word, graph.component_of(int(maker.removeprefix("make_")) - FIRST)] += count
    return named


def without_first_met(graph: Graph, found: Counter[tuple[str, int]]) -> Counter[tuple[str, int]]:
    """Return the classes with those of lost rings in one: of a ring that is lost with its owner, memcheck may call the
    block that it met first lost on its own, where the owner points at another one, which it has looked at by then."""
    rings = Counter(graph.component_of(block) for block in range(BLOCKS) if block not in graph.freed)
    merged: Counter[tuple[str, int]] = Counter()
    for (word, name), count in found.items():
        merged["lost" if word == "indirect" and rings[name] > 1 else word, name] += count
    return merged


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("program", ["graphs", "arenas"])
def test_classes_of_random_graphs(
    refleak: Refleak, folder: Path, tmp_path: Path, program: str, seed: int
) -> None:  # fmt: skip
    graph = random_graph(seed)
    (folder / f"plain-{seed}").write_text(graph.text())
    run = traced(refleak, folder / program, str(folder / f"plain-{seed}"))
    assert by_component(graph, told(run.leaks)) == graph.classes()
    if shutil.which("valgrind") is not None:
        command = [str(folder / program), str(folder / f"plain-{seed}")]
        theirs = by_component(graph, memcheck(command, tmp_path))
        assert without_first_met(graph, theirs) == without_first_met(graph, graph.classes())


@pytest.mark.parametrize("seed", SEEDS)
def test_tagged_pointers_and_storage_of_libraries(refleak: Refleak, folder: Path, seed: int) -> None:
    """memcheck takes the one for pointers into the middle, or for none."""
    graph = random_graph(seed, tagged=True, roots=f"{ROOTS}d")
    (folder / f"tagged-{seed}").write_text(graph.text())
    run = traced(refleak, folder / "graphs", str(folder / f"tagged-{seed}"), str(folder / "library.so"))
    assert by_component(graph, told(run.leaks)) == graph.classes()
