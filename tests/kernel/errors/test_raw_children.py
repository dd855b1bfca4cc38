"""Children that are made past libc's fork and vfork. Target: raw_children.c."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import Refleak
from traced_report import Run, functions

COPIES = (
    ("clone", "O0"), ("clone", "static"), ("clone3", "O2"), ("clone3", "no-plt"), ("instruction", "O2"),
    ("function", "O0"), ("function", "static"),
)  # fmt: skip
SHARED = ("shared", "waited-for")
BUILDS = {
    "O0": ("-O0",), "O2": ("-O2", "-fno-optimize-sibling-calls"), "no-plt": ("-O1", "-fno-plt"),
    "static": ("-O1", "-static"),
}  # fmt: skip


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("raw_children")
    source = Path(__file__).with_name("raw_children.c")
    for name, options in BUILDS.items():
        command = ["gcc", "-g", "-w", "-fno-builtin", "-fcf-protection=full", *options, "-o", folder / name, source]
        subprocess.run(command, check=True, timeout=60)
    return folder


def traced(refleak: Refleak, program: Path, how: str) -> Run:
    return refleak("--heap-only", "--reachability", "auto", target=(program, how))


def check_child(run: Run) -> None:
    run.check_whole()
    (error,) = run.report["errors"]
    assert (error["kind"], error["count"]) == ("double-free", 1)
    for stack, innermost in (("stack", "free_twice"), ("released_at", "free_twice"), ("created_at", "malloc")):
        assert functions(error[stack])[0] == innermost
        assert "in_child" in functions(error[stack])
    (leak,) = [entry for entry in run.report["leaks"] if entry["bytes"] == 77]
    assert (leak["count"], leak["pid"]) == (1, error["pid"])
    assert functions(leak["stack"])[:3] == ["malloc", "lose", "in_child"]
    assert not run.below("make", "allocation")


@pytest.mark.parametrize(("how", "build"), COPIES)
def test_a_child_with_a_copy_of_the_memory_is_traced_from_its_start(
    refleak: Refleak, programs: Path, how: str, build: str
) -> None:
    check_child(traced(refleak, programs / build, how))


@pytest.mark.parametrize("how", SHARED)
def test_a_child_that_shares_the_memory_is_traced_from_its_start(refleak: Refleak, programs: Path, how: str) -> None:
    """Its frees were not seen: what its maker had made was a leak, in a report that said it was complete."""
    check_child(traced(refleak, programs / "O2", how))


def test_one_that_shares_the_memory_and_is_not_seen_from_its_start_is_lost(refleak: Refleak, programs: Path) -> None:
    run = traced(refleak, programs / "O0", "shared-by-number")
    assert run.report["complete"] is False
    [(reason, count)] = run.lost.items()
    assert count == 1 and "child that was not traced from its start" in reason
