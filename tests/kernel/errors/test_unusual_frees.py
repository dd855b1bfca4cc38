"""Frees in handlers, destructors, ended threads, children; blocks of unusual makers; static programs.

A sample of the generated programs; all of them with REFLEAK_ALL_HEAP_PROGRAMS=1.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import Refleak
from heap_programs import MISMATCHED, HeapProgram
from peers import SOURCE, Told, told_by_memcheck, told_by_refleak
from traced_report import Run, functions
from unusual_programs import generate

HERE = Path(__file__).parent
EVERY = 1 if os.environ.get("REFLEAK_ALL_HEAP_PROGRAMS") else 26
TRIES = 5
BUILDS = {"plain": [], "optimised": ["-O2"], "static": ["-static"]}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unusual")
    (folder / SOURCE).write_text(generate()[0])
    for name, flags in {**BUILDS, "library.so": ["-shared", "-fPIC", "-DLIBRARY"]}.items():
        command = ["g++", "-std=c++17", "-O0", "-g", "-w", "-pthread", *flags, "-o", name, SOURCE]
        subprocess.run(command, cwd=folder, check=True, timeout=300, stderr=subprocess.DEVNULL)
    return folder


def whole(refleak: Refleak, *target: object) -> Run:
    """Trace until nothing was lost: beside other load a child may run on before its probes are in place."""
    for turn in range(TRIES):  # equal calls share one run
        options = "--heap-only", "--reachability", "auto"
        run = refleak(*options, target=target, environment=(("TURN", str(turn)),))
        if run.report["complete"]:
            return run
    raise AssertionError(run.report["lost"])


def expected(program: HeapProgram, twin: str, build: str = "plain") -> Told:
    """Of calls without line information, in static programs, mismatches are not told."""
    hidden = program.kind == MISMATCHED and build == "static"
    told = {(program.kind, program.offence_line, program.birth_line)}
    return frozenset(told if twin == "bad" and not hidden else set())


def told(refleak: Refleak, built: Path, build: str, program: HeapProgram, twin: str) -> Told:
    run = whole(refleak, built / build, program.name, twin, built / "library.so")
    assert {error["count"] for error in run.report["errors"]} <= {1}
    return told_by_refleak(run.report)


@pytest.mark.parametrize("twin", ["bad", "good"])
@pytest.mark.parametrize("program", generate()[1][::EVERY], ids=lambda program: program.name)
def test_errors_in_unusual_places(refleak: Refleak, built: Path, program: HeapProgram, twin: str) -> None:
    assert told(refleak, built, "plain", program, twin) == expected(program, twin)


@pytest.mark.parametrize("program", generate()[1][5 :: 2 * EVERY], ids=lambda program: program.name)
def test_calls_that_became_jumps(refleak: Refleak, built: Path, program: HeapProgram) -> None:
    """What is called last is jumped to: the lines are those of callers. A key's destructor leaves none of them."""
    kinds = {kind for kind, *_ in expected(program, "bad")}
    assert {kind for kind, *_ in told(refleak, built, "optimised", program, "bad")} == kinds


KEYS = [program for program in generate()[1] if program.flow == "key"]


@pytest.mark.parametrize("program", KEYS, ids=lambda program: program.name)
def test_only_the_c_library_is_on_the_stack(refleak: Refleak, built: Path, program: HeapProgram) -> None:
    (error,) = told(refleak, built, "optimised", program, "bad")
    assert error[0] == program.kind


STATIC = [program for program in generate()[1][55 :: EVERY // 2 + 1] if program.kind != MISMATCHED]


@pytest.mark.parametrize("program", STATIC, ids=lambda program: program.name)
def test_errors_of_static_programs(refleak: Refleak, built: Path, program: HeapProgram) -> None:
    assert told(refleak, built, "static", program, "bad") == expected(program, "bad", "static")


@pytest.fixture(scope="module", params=["-static", "-O2"])
def frees(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("frees") / "static_frees"
    command = ["g++", "-std=c++17", "-g", "-pthread", "-w", request.param, "-o", str(path), "static_frees.cpp"]
    subprocess.run(command, cwd=HERE, check=True, timeout=300)
    return path


@pytest.mark.parametrize("how", ["child-deletes", "threads"])
def test_correct_frees_are_no_errors(refleak: Refleak, frees: Path, how: str) -> None:
    """In a static program `delete` and the `free` that it calls are both seen."""
    assert whole(refleak, frees, how).report["errors"] == []


@pytest.mark.parametrize(("how", "first"), [
    ("child-deletes-twice", "main"), ("thread-frees-twice", "frees_twice"), ("key-of-freed", "key"),
])  # fmt: skip
def test_bad_frees_of_a_program_that_has_all(refleak: Refleak, frees: Path, how: str, first: str) -> None:
    (error,) = whole(refleak, frees, how).report["errors"]
    assert (error["kind"], error["count"]) == ("double-free", 1)
    if first != "key":
        assert first in {str(name).partition("(")[0] for name in functions(error["stack"])}


def test_memcheck_says_the_same(built: Path) -> None:
    """It tells mismatches in children too, and calls a double free an invalid one."""
    program = generate()[1][60]
    (error,) = told_by_memcheck(built / "plain", program.name, "bad", built)
    assert error[1:] == (program.offence_line, program.birth_line)
    assert told_by_memcheck(built / "plain", program.name, "good", built) == frozenset()


def test_generated_programs_are_what_they_are_called() -> None:
    source, programs = generate()
    lines = source.splitlines()
    assert len(programs) == len({program.name for program in programs}) == 105
    assert all("free(" in lines[p.offence_line - 1] or "delete" in lines[p.offence_line - 1] for p in programs)
