"""Frees of what lies in no heap: where that is. Target: foreign_frees.c."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import Refleak
from traced_report import functions

CASES = (
    ("zeroed", "in variable zeroed of foreign_frees", ["again", "main"]),
    ("code", "in the code of foreign_frees", ["again", "main"]),
    ("unused", "never allocated: no page is there", ["again", "main"]),
    ("fiber", "on the stack of in_fiber", ["again", "in_fiber"]),
    ("local", "in a thread-local variable of the thread that frees it", ["again", "frees_local"]),
)  # fmt: skip


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("foreign") / "foreign_frees"
    source = Path(__file__).with_name("foreign_frees.c")
    flags = ["-O1", "-g", "-w", "-fno-builtin", "-fno-optimize-sibling-calls", "-pthread"]
    subprocess.run(["gcc", *flags, "-o", path, source], check=True, timeout=60)
    return path


@pytest.mark.parametrize(("case", "reason", "offence"), CASES, ids=[case for case, *_ in CASES])
def test_where_it_lies(refleak: Refleak, program: Path, case: str, reason: str, offence: list[str]) -> None:
    (error,) = refleak("--heap-only", "--reachability", "auto", target=(program, case)).report["errors"]
    assert (error["kind"], error["count"], error["reason"]) == ("invalid-free", 1, reason)
    assert functions(error["stack"])[:2] == offence


def test_the_stack_of_another_thread(refleak: Refleak, program: Path) -> None:
    """It is a mapping, which the C library made for a stack."""
    (error,) = refleak("--heap-only", target=(program, "others-stack")).report["errors"]
    assert (error["kind"], error["count"]) == ("invalid-free", 1)
    assert " bytes inside a stack of " in error["reason"]
    assert error["reason"].endswith(" that mmap made")
    assert "pthread_create" in " ".join(name or "" for name in functions(error["created_at"]))


def test_a_stack_that_is_a_block(refleak: Refleak, program: Path) -> None:
    run = refleak("--heap-only", "--reachability", "auto", target=(program, "fiber-in-block"))
    (error,) = run.report["errors"]
    assert (error["kind"], error["count"]) == ("invalid-free", 1)
    assert error["reason"].endswith(" bytes inside a block of 65,536")
    assert functions(error["created_at"])[:2] == ["malloc", "main"]
