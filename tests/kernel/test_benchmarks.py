"""The benchmark runs, measures what it says, and leaves nothing behind; no figure is asserted."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from bpf_residue import Residue

CHECKOUT = Path(__file__).parents[2]
TIMEOUT_SECONDS = 240


def run_benchmarks(*options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", "--quick", "--rounds", "1", "--scale", "0.001", *map(str, options)]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)


def rows_of(document: str, title: str) -> list[list[str]]:
    """Return the cells of the table below a title, without its header."""
    section = document.partition(f"### {title}\n")[2].split("\n### ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> str:
    residue = Residue()
    output = tmp_path_factory.mktemp("benchmarks") / "results.md"
    result = run_benchmarks("--only", "floor,pairs", "stubs", "-o", output)
    assert result.returncode == 0, result.stderr
    assert residue.left() == []
    assert output.read_text().strip() == result.stdout.strip()
    return output.read_text()


def test_every_pair_was_measured_in_all_three_ways(document: str) -> None:
    rows = rows_of(document, "malloc+free pairs")
    assert [row[:3] for row in rows] == [
        [threads, pointers, depth] for pointers in ("no", "yes") for threads in "12" for depth in ("5", "20", "60")
    ]
    stubs = rows_of(document, "get+put pairs")
    assert [row[:2] for row in stubs] == [[stub, depth] for stub in ("nop", "plain") for depth in ("5", "20", "60")]
    for row in rows + stubs:
        assert all(re.fullmatch(r"[\d.,]+ (ns|µs|ms)", cell) for cell in row[-4:-1]), row
        assert re.fullmatch(r"[\d.,]+", row[-1]), row


def test_only_the_goals_that_were_measured_are_judged(document: str) -> None:
    goals = rows_of(document, "What was to be reached")
    assert len(goals) == 4
    assert all(verdict == "reached" or verdict.startswith("missed, by ") for *_, verdict in goals)


def test_an_unknown_benchmark_is_named() -> None:
    result = run_benchmarks("--only", "pairs,speed")
    assert (result.returncode, "no benchmark is called speed" in result.stderr) == (2, True)
