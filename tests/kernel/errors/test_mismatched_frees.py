"""Blocks that another family of functions frees, or with another size or alignment.

Targets: bad_operators.cpp, inlined_operators.cpp.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Refleak
from pointer_programs import UNFOLDED
from traced_report import functions

VARIANTS = {
    "unoptimised": ["-O0", "-g"], "optimised": ["-O2", "-g", "-fno-inline"], "no-lines": ["-O2", "-fno-inline"],
    "no-plt": ["-O1", "-g", "-fno-plt"], "own": ["-O1", "-g", "-DOWN"], "own-optimised": ["-O2", "-g", "-DOWN"],
    "own-no-lines": ["-O2", "-DOWN"], "static": ["-O1", "-g", "-static"], "stripped": ["-O2", "-s"],
}  # fmt: skip
JEMALLOC = Path("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")
CASES = {
    "new-free": ("a block of 4 bytes that new made, freed by free", "drop_c(void*)", "make()"),
    "array-free": ("a block of 52 bytes that new[] made, freed by free", "drop_c(void*)", "make_array()"),
    "array-delete": ("a block of 52 bytes that new[] made, freed by delete", "drop(void*)", "make_array()"),
    "nothrow-array-delete": ("a block of 68 bytes that new[] made, freed by delete", "drop(void*)", "make_quietly()"),
    "new-array-delete": ("a block of 4 bytes that new made, freed by delete[]", "drop_array(void*)", "make()"),
    "malloc-delete": ("a block of 101 bytes that malloc made, freed by delete", "drop(void*)", "make_c()"),
    "malloc-array-delete": (
        "a block of 101 bytes that malloc made, freed by delete[]", "drop_array(void*)", "make_c()",
    ),
    "new-realloc": ("a block of 4 bytes that new made, freed by realloc", "grow(void*)", "make()"),
    "aligned-alloc-delete": (
        "a block of 192 bytes that aligned_alloc made, freed by aligned delete",
        "drop_aligned(void*, unsigned long)", "make_aligned()",
    ),
    "wide-delete": ("a block of 192 bytes that aligned new made, freed by delete", "drop(void*)", "make_wide()"),
    "wide-free": ("a block of 192 bytes that aligned new made, freed by free", "drop_c(void*)", "make_wide()"),
    "size": (
        "a block of 41 bytes that new made, freed as one of 43 bytes", "drop_sized(void*, unsigned long)", "main",
    ),
    "alignment": (
        "a block of 64 bytes that aligned new made with alignment 64, freed as of 128",
        "drop_aligned(void*, unsigned long)", "main",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def operators(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("operators")
    source = Path(__file__).parent / "bad_operators.cpp"
    for name, flags in VARIANTS.items():
        command = ["g++", "-std=c++17", "-w", *flags, "-o", folder / name, source]
        subprocess.run(command, check=True, timeout=120)
    return folder


@pytest.mark.parametrize("case", CASES)
def test_each_mismatch_is_told_with_both_stacks(refleak: Refleak, operators: Path, case: str) -> None:
    run = refleak("--heap-only", target=(operators / "unoptimised", case))
    reason, freed_in, made_in = CASES[case]
    (error,) = run.report["errors"]
    assert (run.status, error["kind"], error["count"], error["reason"]) == (0, "mismatched-free", 1, reason)
    assert functions(error["stack"])[0] == freed_in
    made = [name for name in functions(error["created_at"])[1:] if not str(name).startswith("operator new")]
    assert made[0] == made_in
    assert error["released_at"] is None


@pytest.mark.parametrize("variant", ["optimised", "no-lines", "no-plt", "own"])
@pytest.mark.parametrize("case", ["new-free", "array-delete", "malloc-delete", "new-realloc"])
def test_the_way_a_program_is_built_does_not_matter(
    refleak: Refleak, operators: Path, variant: str, case: str
) -> None:
    """Optimised, `drop` jumps to operator delete, and that to free: neither stands on the stack."""
    run = refleak("--heap-only", target=(operators / variant, case))
    (error,) = run.report["errors"]
    assert (error["kind"], error["count"]) == ("mismatched-free", 1)
    assert error["reason"].partition(" that ")[2] == CASES[case][0].partition(" that ")[2]


@pytest.mark.parametrize("variant", [*VARIANTS, "jemalloc"])
def test_correct_programs_have_no_mismatch(refleak: Refleak, operators: Path, variant: str) -> None:
    command: tuple[str | Path, ...] = (operators / variant, "correct")
    if variant == "jemalloc":
        command = ("/usr/bin/env", f"LD_PRELOAD={JEMALLOC}", operators / "unoptimised", "correct")
    run = refleak("--heap-only", target=command)
    assert (run.status, run.report["errors"]) == (0, [])


def test_operators_of_a_replacement_are_seen_too(refleak: Refleak, operators: Path) -> None:
    program = operators / "unoptimised"
    run = refleak("--heap-only", target=("/usr/bin/env", f"LD_PRELOAD={JEMALLOC}", program, "array-delete"))
    (error,) = run.report["errors"]
    assert (error["kind"], error["count"], error["reason"]) == ("mismatched-free", 1, CASES["array-delete"][0])


def test_a_free_like_no_other_is_looked_at(refleak: Refleak, operators: Path) -> None:
    """The stacks of frees are walked of the first blocks of a place, later of few: but for one from another place."""
    run = refleak("--heap-only", target=(operators / "unoptimised", "rarely"))
    (error,) = run.report["errors"]
    assert (error["kind"], error["count"], error["reason"]) == ("mismatched-free", 1, CASES["new-free"][0])


def test_equal_mismatches_are_one_error(refleak: Refleak, operators: Path) -> None:
    (error,) = refleak("--heap-only", target=(operators / "unoptimised", "often")).report["errors"]
    assert 16 <= error["count"] <= 1009
    assert error["reason"] == CASES["new-free"][0]


def built_with_inlined(folder: Path, compiler: str, *flags: str) -> Path:
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    program, source = folder / "inlined", Path(__file__).with_name("inlined_operators.cpp")
    subprocess.run([compiler, *flags, "-std=c++17", "-g", "-w", "-o", program, source], check=True, timeout=120)
    return program


INLINED = {
    "gcc": ["g++", "-O2", *UNFOLDED], "gcc-jumps": ["g++", "-O1", "-foptimize-sibling-calls"],
    "clang": ["clang++", "-O2"],
}  # fmt: skip
FIRST_FOLDING_CLANG = 17
"""From then on nothing is judged of what it made, so nothing can be told."""


def folds(compiler: str) -> bool:
    if compiler != "clang++":
        return False
    said = subprocess.run([compiler, "-dumpversion"], check=True, capture_output=True, text=True, timeout=60).stdout
    return int(said.partition(".")[0]) >= FIRST_FOLDING_CLANG


@pytest.mark.parametrize("build", INLINED)
def test_operators_that_were_inlined_free_as_themselves(refleak: Refleak, tmp_path: Path, build: str) -> None:
    """`delete` is a jump to `free` then, in a function like any other, or in a thunk, of which DWARF says nothing."""
    program = built_with_inlined(tmp_path, *INLINED[build])
    assert refleak("--heap-only", target=(program,)).report["errors"] == []
    errors = refleak("--heap-only", target=(program, "bad")).report["errors"]
    if folds(INLINED[build][0]):
        assert errors == []
        return
    (error,) = errors
    assert (error["kind"], error["reason"]) == ("mismatched-free", "a block of 53 bytes that new[] made, freed by free")
    assert functions(error["stack"])[:2] == ["main", "__libc_start_call_main"]


@pytest.mark.parametrize("build", [("g++", "-O2", "-fno-ipa-icf"), ("clang++", "-O2")], ids=" ".join)
def test_a_jump_that_is_an_operators_and_free_s_is_no_mismatch(
    refleak: Refleak, tmp_path: Path, build: tuple[str, ...]
) -> None:
    """Compilers made one of both, and their DWARF knew `free` only."""
    assert refleak("--heap-only", target=(built_with_inlined(tmp_path, *build),)).report["errors"] == []
