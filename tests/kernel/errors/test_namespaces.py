"""Frees in a heap of another namespace (dlmopen) are no errors, but for its own double ones. Target: namespaces.c."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from conftest import Refleak
from traced_report import functions


@pytest.fixture(scope="module")
def namespaces(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder, source = tmp_path_factory.mktemp("namespaces"), Path(__file__).with_name("namespaces.c")
    program, library = folder / "namespaces", folder / "libother.so"
    flags = ["-O1", "-g", "-w", "-fno-builtin", "-fno-optimize-sibling-calls", "-pthread"]
    subprocess.run(["gcc", *flags, "-o", program, source], check=True, timeout=60)
    subprocess.run(["gcc", *flags, "-DLIBRARY", "-fPIC", "-shared", "-o", library, source], check=True, timeout=60)
    return program, library


def test_the_frees_of_a_correct_program_are_no_errors(refleak: Refleak, namespaces: tuple[Path, Path]) -> None:
    run = refleak(target=namespaces)
    run.check_whole()
    assert (run.report["errors"], run.report["notes"]) == ([], [])
    made, freed = run.blocks[:2]
    assert freed >= 2 * 9 * 80 and made - freed <= 64  # the loader's own stay


def test_a_double_free_in_the_other_heap_is_one(refleak: Refleak, namespaces: tuple[Path, Path]) -> None:
    run = refleak(target=(*namespaces, "again"))
    (error,) = run.report["errors"]
    assert (run.status, error["kind"], error["count"]) == (128 + signal.SIGABRT, "double-free", 1)
    assert functions(error["stack"])[0] == "library_turn"


def test_a_heap_that_calls_pass_the_preloaded_library_by_to(refleak: Refleak, namespaces: tuple[Path, Path]) -> None:
    run = refleak("--preload", target=namespaces)
    assert (run.status, run.report["errors"]) == (0, [])
