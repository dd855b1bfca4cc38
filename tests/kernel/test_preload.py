"""With --preload the report is the same: the same entries, with the same ids, stacks and errors."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import Refleak
from test_sampled_blocks import SIGMAS, SIZES, N
from traced_report import Run, functions

from tracer.model.preload_names import SONAME

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

_BAD_FREES = r"""
#include <stdlib.h>
#include <string.h>
static char *keep;
int main(int count, char **arguments)
{
	char *one = malloc(23), *two = calloc(3, 7), *three = strdup("refleak");
	keep = aligned_alloc(64, 128);
	free(one + 8 * !strcmp(arguments[1], "inside"));
	if (!strcmp(arguments[1], "twice")) { malloc(1000); free(one); }
	if (!strcmp(arguments[1], "realloc")) two = realloc(one, 100);
	free(two);
	free(three);
}
"""


def _entries(run: Run) -> list[tuple[Any, ...]]:
    leaks = (
        (leak["id"], leak["kind"], leak["type"], leak["count"], leak["bytes"], leak["state"],
         tuple((frame["function"], frame["module"]) for frame in leak["stack"]))
        for leak in run.leaks
    )  # fmt: skip
    return sorted(leaks, key=repr)


def _errors(run: Run) -> Counter[tuple[str, str]]:
    return Counter((error["kind"], str(functions(error["stack"]))) for error in run.report["errors"])


def _both(refleak: Refleak, *target: object) -> tuple[Run, Run]:
    options = ("--top", "1000", "--show", "all")
    return refleak(*options, target=target), refleak(*options, "--preload", target=target)


@pytest.mark.parametrize(
    "target",
    [
        *(("alloc_functions", name) for name in ("malloc", "calloc", "aligned_alloc", "posix_memalign")),
        ("realloc_cases", "to_zero"), ("cpp",), ("threads",), ("failed_alloc",), ("fork_exec_chain", 3),
        ("dlopen_in_child",),
    ],
    ids=lambda target: "-".join(map(str, target)),
)  # fmt: skip
def test_entries_are_the_same(refleak: Refleak, target: tuple[object, ...]) -> None:
    without, with_it = _both(refleak, *target)
    assert _entries(with_it) == _entries(without)
    assert (with_it.blocks, with_it.status, with_it.stdout) == (without.blocks, without.status, without.stdout)
    assert with_it.report["complete"] and not [note for note in with_it.report["notes"] if "preload" in note]


@pytest.mark.parametrize(("target", "reason"), [
    ("alloc_functions-static", "it is static"),
    ("unwinding-jemalloc", "it has an allocator of its own"),
])  # fmt: skip
def test_others_fall_back_with_a_note(refleak: Refleak, target: str, reason: str) -> None:
    arguments = ("malloc",) if target.endswith("static") else ()
    without, with_it = _both(refleak, target, *arguments)
    assert _entries(with_it) == _entries(without)
    assert [reason in note for note in with_it.report["notes"] if note.startswith("not preloaded: ")] == [True]


@pytest.fixture(scope="module")
def bad_frees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("preload")
    (folder / "bad_frees.c").write_text(_BAD_FREES)
    command = ["cc", "-g", "-O1", "-fno-builtin", "-w", "-o", str(folder / "bad_frees"), str(folder / "bad_frees.c")]
    subprocess.run(command, check=True, timeout=60)
    return folder / "bad_frees"


@pytest.mark.parametrize("case", ["inside", "twice", "realloc"])
def test_errors_are_the_same(refleak: Refleak, bad_frees: Path, case: str) -> None:
    without, with_it = _both(refleak, bad_frees, case)
    assert _errors(with_it) == _errors(without)
    assert _errors(with_it)
    assert with_it.blocks == without.blocks


def test_programs_of_both_kinds_in_one_run(refleak: Refleak, targets: Path) -> None:
    """The shell has the library; its children have it, have lost it, or cannot have it."""
    program = targets / "alloc_functions"
    script = f"{program} malloc; env -i {program} calloc; {program}-static malloc; env | grep -c LD_PRELOAD; true"
    without, with_it = _both(refleak, "/bin/sh", "-c", script)
    plain, preloaded = (
        Counter((leak["type"], leak["count"], leak["bytes"]) for leak in run.leaks if _is_in(leak, "alloc_functions"))
        for run in (without, with_it)
    )
    assert preloaded == plain
    assert len(plain) == 2
    assert (without.stdout, with_it.stdout, with_it.stderr) == ("0\n", "1\n", without.stderr)
    assert sum(note.startswith("not preloaded: ") for note in with_it.report["notes"]) == 2


def _is_in(leak: dict[str, Any], module: str) -> bool:
    return any((frame["module"] or "").startswith(module) for frame in leak["stack"])


def test_nothing_of_the_library_is_in_a_stack(refleak: Refleak) -> None:
    modules = {frame["module"] for leak in _both(refleak, "cpp")[1].leaks for frame in leak["stack"]}
    assert modules
    assert SONAME not in modules


def test_a_sample_is_drawn_in_the_process(refleak: Refleak) -> None:
    run = refleak("--preload", "--sample-bytes", N, target=("sampled",))
    assert (run.status, run.report["lost"], run.report["errors"]) == (0, [], [])
    assert run.blocks[0] < 20_000  # the others came to no probe
    for function in ("leak_small", "leak_calloc", "leak_reallocated"):
        [leak] = run.below(function)
        sizes = SIZES[function]
        p = -math.expm1(-sizes[0] / N)
        sigma = math.sqrt(len(sizes) * (1 - p) / p)
        assert abs(leak["estimated"]["count"] - len(sizes)) < SIGMAS * sigma
        assert 0.5 * sigma < leak["estimated"]["count_error"] < 2 * sigma
    [big] = run.below("leak_big")
    assert big["estimated"] == {"count": 5, "bytes": 5 << 20, "count_error": 0, "bytes_error": 0}


def test_a_distance_of_one_byte_draws_all_and_finds_all_frees(refleak: Refleak) -> None:
    """Of blocks of 37 bytes and more: each is missed with a probability of 10^-16."""
    run = refleak("--preload", "--sample-bytes", 1, target=("fork_no_exec",))
    assert sorted((leak["state"], leak["count"], leak["bytes"]) for leak in run.leaks) == [
        ("inherited", 8, 296), ("leaked", 7, 287), ("leaked", 11, 407),
    ]  # fmt: skip
    [leak] = refleak("--preload", "--sample-bytes", 1, target=("threads",)).below("allocate_in_thread", "allocation")
    assert (leak["count"], leak["bytes"]) == (31, 31 * 67)
