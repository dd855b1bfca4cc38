"""Frees that are called through pointers, of blocks whose pointers went through structs and containers.

Which of two functions a pointer led to is not told where one jumps to the other (docs/heap-errors.md): the wrappers
here do not.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import Refleak
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
