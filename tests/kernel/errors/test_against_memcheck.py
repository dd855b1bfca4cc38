"""refleak beside memcheck and AddressSanitizer on generated programs: the same errors at the same lines, no others.

A sample of the programs; all of them with REFLEAK_ALL_HEAP_PROGRAMS=1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Refleak
from heap_programs import DOUBLE, HeapProgram, generate
from peers import SOURCE, Told, told_by_memcheck, told_by_refleak, told_by_sanitizer

EVERY = 1 if os.environ.get("REFLEAK_ALL_HEAP_PROGRAMS") else 13


@dataclass(frozen=True)
class Built:
    folder: Path
    plain: Path
    sanitized: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("heap")
    source, _ = generate()
    (folder / SOURCE).write_text(source)
    for name, flags in {"plain": [], "sanitized": ["-fsanitize=address"]}.items():
        command = ["g++", "-std=c++17", "-O0", "-g", "-w", "-pthread", *flags, "-o", name, SOURCE]
        subprocess.run(command, cwd=folder, check=True, timeout=300)
    return Built(folder, folder / "plain", folder / "sanitized")


def expected(program: HeapProgram, twin: str) -> Told:
    lines = (program.kind, program.offence_line, program.birth_line)
    return frozenset({lines} if twin == "bad" else set())


def in_memchecks_words(told: Told) -> Told:
    """It has one kind for all frees of what is no live block."""
    return frozenset(("invalid-free" if kind == DOUBLE else kind, *lines) for kind, *lines in told)  # type: ignore[misc]


@pytest.mark.parametrize("twin", ["bad", "good"])
@pytest.mark.parametrize("program", generate()[1][::EVERY], ids=lambda program: program.name)
def test_the_same_errors_at_the_same_lines(
    refleak: Refleak, built: Built, program: HeapProgram, twin: str
) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("needs valgrind")
    wanted = expected(program, twin)
    run = refleak("--heap-only", target=(built.plain, program.name, twin))
    assert told_by_refleak(run.report) == wanted
    assert told_by_memcheck(built.plain, program.name, twin, built.folder) == in_memchecks_words(wanted)
    assert told_by_sanitizer(built.sanitized, program.name, twin) == wanted


def test_generated_programs_are_what_they_are_called() -> None:
    source, programs = generate()
    lines = source.splitlines()
    assert len(programs) == len({program.name for program in programs}) == 147
    assert sum(program.is_scored_only for program in programs) in range(60, 90)
    for program in programs:
        assert any(word in lines[program.offence_line - 1] for word in ("free(", "delete"))
        assert any(word in lines[program.birth_line - 1] for word in ("alloc(", "strdup(", "memalign(", "new "))
