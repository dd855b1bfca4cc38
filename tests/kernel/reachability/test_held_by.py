"""Who holds what is left, by the names in the program's DWARF."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from conftest import CHECKOUT, Refleak
from traced_report import Json, Run, functions

HERE = Path(__file__).parent
ANY = "lost,indirect,possible,stack,reachable"
Told = set[tuple[object, ...]]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("holders") / "holders"
    command = ["gcc", "-O1", "-g", "-fno-builtin", "-pthread", "-w", f"-I{CHECKOUT / 'examples'}", "-o", str(path)]
    subprocess.run([*command, str(HERE / "holders.c")], check=True, timeout=100)
    return path


def traced(refleak: Refleak, program: Path, case: str) -> Run:
    run = refleak("--reachability", "auto", target=(program, case))
    assert run.report["complete"], run.report["lost"]
    return run


def holders(run: Run, maker: str, kind: str = "allocation") -> Told:
    """Return who holds what `maker` made: kind, name, offset, count, and the function that made a block."""
    return {
        (h["kind"], h["name"], h["offset"], h["count"], functions(h["stack"] or [])[:1] == ["make_owner"])
        for leak in run.below(maker) if leak["kind"] == kind for h in leak["holders"]
    }  # fmt: skip


@pytest.mark.parametrize(("case", "maker", "expected"), [
    ("globals", "make_item", {("global", "machines.host.item", None, 1, False)}),
    ("globals", "make_other", {("global", "bare[]", None, 31, False)}),
    ("blocks", "make_owner", {("global", "machines.host.table.slots[]", None, 47, False)}),
    ("blocks", "make_item", {("block", "struct owner.second", 16, 47, True)}),
    ("blocks", "make_other", {("block", None, 56, 23, False)}),
    ("storage", "make_item", {("thread-local", "local+0x8", None, 1, False)}),
    ("mapping", "make_item", {("mapping", None, None, 7, False)}),
    ("freed", "make_item", {("freed-block", "struct owner.second", 16, 1, True)}),
])  # fmt: skip
def test_holders(refleak: Refleak, program: Path, case: str, maker: str, expected: Told) -> None:
    assert holders(traced(refleak, program, case), maker) == expected


def test_a_stack_is_told_by_thread_function_and_variable(refleak: Refleak, program: Path) -> None:
    (leak,) = traced(refleak, program, "thread").below("make_item")
    # What it calls may have saved the register with the pointer: then that is a holder too.
    assert {(h["kind"], h["thread"]) for h in leak["holders"]} == {("stack", leak["instances"][0]["thread"])}
    stacks = [functions(holder["stack"]) for holder in leak["holders"]]
    named = [(stack[:2], holder["name"]) for stack, holder in zip(stacks, leak["holders"], strict=True)]
    assert [name for name in named if name[0][0] == "keep_on_stack"] == [(["keep_on_stack", "run"], "own")]
    assert all(stack[stack.index("keep_on_stack") :][:2] == ["keep_on_stack", "run"] for stack in stacks)


def test_variables_of_clang_are_told_without_frame_pointers(refleak: Refleak, tmp_path: Path) -> None:
    path = tmp_path / "holders"
    command = ["clang", "-O2", "-g", "-fno-builtin", "-pthread", "-w", f"-I{CHECKOUT / 'examples'}", "-o", str(path)]
    subprocess.run([*command, str(HERE / "holders.c")], check=True, timeout=100)
    (leak,) = traced(refleak, path, "thread").below("make_item")
    told = {(functions(holder["stack"])[0], holder["name"]) for holder in leak["holders"]}
    assert ("keep_on_stack", "own") in told and {name for _, name in told} <= {"own", None}


def test_the_stack_of_a_thread_that_ended_holds_nothing(refleak: Refleak, program: Path) -> None:
    (leak,) = traced(refleak, program, "ended-thread").below("make_other")
    assert (leak["reachability"], leak["holders"]) == ("lost", [])


def test_holders_are_compared_with_the_count(refleak: Refleak, program: Path) -> None:
    leaks = traced(refleak, program, "counted").leaks
    said = sorted((leak["count"], leak["holders_and_count"]) for leak in leaks if leak["kind"] == "reference")
    assert said == [
        (1, "count 1, no holder: lost"), (1, "count 1, no holder: lost"),
        (1, "count 2, 2 holders (bare[], machines.spare)"),
        (3, "count 2, one holder (owner.first): one reference has no holder"),
    ]  # fmt: skip


def of_errors(report: Json) -> Told:
    return {(h["kind"], h["name"]) for error in report["errors"] for h in error["holders"]}


def test_who_points_at_what_was_freed_past_its_counter(refleak: Refleak, program: Path) -> None:
    run = traced(refleak, program, "gone")
    assert of_errors(run.report) == {("global", "machines.spare"), ("freed-block", "struct owner.second")}


def test_a_recording_says_the_same(refleak: Refleak, program: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.refleak"
    subprocess.run([str(CHECKOUT / "refleak"), "-o", path, "--exec", program, "gone"], check=True, timeout=200,
                   capture_output=True)  # fmt: skip
    command = [str(CHECKOUT / "refleak"), "report", "--format", "json", str(path)]
    said = subprocess.run(command, check=True, timeout=200, capture_output=True).stdout
    assert of_errors(json.loads(said)) == {("global", "machines.spare"), ("freed-block", "struct owner.second")}
