"""Frees that are called through pointers, of blocks whose pointers went through structs and containers.

Targets: through_pointers.cpp, and the programs of pointer_programs.py, in some of the ways that these are built; in all
with REFLEAK_ALL_HEAP_PROGRAMS=1.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import Refleak
from pointer_programs import BUILDS, PointerProgram, build, generate, told_of
from traced_report import functions

SOURCE = Path(__file__).with_name("through_pointers.cpp")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pointers") / SOURCE.stem
    command = ["g++", "-std=c++17", "-O1", "-g", "-w", "-fno-builtin", "-fno-optimize-sibling-calls"]
    subprocess.run([*command, "-o", str(path), str(SOURCE)], check=True, timeout=100)
    return path


@pytest.mark.parametrize(
    ("case", "kind", "count", "called_in"),
    [
        ("mismatched-table", "mismatched-free", 1, "drop_plainly"),
        ("mismatched-container", "mismatched-free", 3, "drop_plainly"),
        ("double-pointer", "double-free", 1, "main"),
        ("double-map", "double-free", 1, "main"),
        ("invalid-pointer", "invalid-free", 1, "main"),
        ("invalid-stack", "invalid-free", 1, "main"),
    ],
)
def test_errors(refleak: Refleak, program: Path, case: str, kind: str, count: int, called_in: str) -> None:
    run = refleak("--heap-only", "--no-mappings", target=(program, case))
    assert run.report["complete"], run.report["lost"]
    assert {error["kind"] for error in run.report["errors"]} == {kind}
    assert sum(error["count"] for error in run.report["errors"]) == count
    for error in run.report["errors"]:
        assert any((name or "").partition("(")[0] == called_in for name in functions(error["stack"]))


@pytest.mark.parametrize("case", ["correct-table", "correct-deleters"])
def test_correct_programs(refleak: Refleak, program: Path, case: str) -> None:
    run = refleak("--heap-only", "--no-mappings", target=(program, case))
    assert run.report["complete"], run.report["lost"]
    assert run.report["errors"] == []


FEW = ["O0 lazy PIE", "O0 now fixed own", "O2 lazy fixed", "O2 now PIE own", "O2 lazy PIE own unfolded"]
CHOSEN = list(BUILDS) if os.environ.get("REFLEAK_ALL_HEAP_PROGRAMS") else FEW
LOOKED_AT = [program for program in generate()[1] if not program.is_scored_only]
NOT_CERTAIN = ("shared_ptr", "array", "swapped", "swapped by register")
"""Flows where the address of who is called is in a register that was loaded by what a function returned, or by an
index; and where it may be in none any more."""
HELD_IN_REGISTERS = ("unique_ptr", "function", "for_each")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    build(folder, CHOSEN)
    return folder


def must_be_told(program: PointerProgram, way: str) -> bool:
    """Tell whether a bad program's mismatch is certain, as it is built."""
    if way.startswith("O2"):
        return False
    if "own" not in way:
        return program.flow not in NOT_CERTAIN
    return program.flow in HELD_IN_REGISTERS and program.free == "free" and program.maker in ("new", "new[]")


@pytest.mark.parametrize("way", CHOSEN)
def test_each_mismatch_that_is_certain(refleak: Refleak, built: Path, way: str) -> None:
    run = refleak("--heap-only", "--no-mappings", target=(built / way.replace(" ", "-"), "together", "bad"))
    assert run.report["complete"], run.report["lost"]
    told = told_of(run.report)
    assert set(told.values()) <= {"mismatched-free"}
    assert bool(told) is (way.startswith("O0") or not way.endswith("own"))
    bad = [program for program in LOOKED_AT if program.is_bad]
    assert [one.name for one in bad if must_be_told(one, way) and one.line not in told] == []
    assert set(told) <= {program.line for program in generate()[1] if program.is_bad}


@pytest.mark.parametrize("way", CHOSEN)
def test_their_correct_twins(refleak: Refleak, built: Path, way: str) -> None:
    run = refleak("--heap-only", "--no-mappings", target=(built / way.replace(" ", "-"), "together", "good"))
    assert run.report["complete"], run.report["lost"]
    assert [one.name for one in LOOKED_AT if one.line in told_of(run.report)] == []
    assert run.report["totals"]["allocations"]["freed"] > len(LOOKED_AT) // 3
