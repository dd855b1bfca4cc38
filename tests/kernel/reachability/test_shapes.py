"""What is lost and what is still reachable, held against memcheck's word on the same programs."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest
from conftest import Refleak
from traced_report import Json, Run, callers, functions

HERE = Path(__file__).parent
Classes = Counter[tuple[str, str]]
"""Blocks by class and function that made them."""
_OF_MEMCHECK = {
    "Leak_DefinitelyLost": "lost", "Leak_IndirectlyLost": "indirect", "Leak_PossiblyLost": "possible",
    "Leak_StillReachable": "reachable",
}  # fmt: skip


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reachability")
    for compiler, source, name, *options in (
        ("gcc", "shapes.c", "shapes"), ("g++", "containers.cc", "containers"), ("gcc", "rounded.c", "rounded"),
        ("gcc", "rounded.c", "asks", "-DASKS"), ("gcc", "rounded.c", "pages", "-DPAGES"),
        ("gcc", "shapes.c", "shapes-static", "-static"), ("gcc", "libc_calls.c", "libc_calls"),
        ("gcc", "last_block.c", "last_block"),
    ):  # fmt: skip
        command = [compiler, "-O1", "-g", "-fno-builtin", "-pthread", "-w", *options, "-o", str(folder / name)]
        subprocess.run([*command, str(HERE / source)], check=True, timeout=100)
    return folder


def maker(stack: list[str | None]) -> str:
    return next((name for name in stack if name and name.startswith("make_")), "")


def told(leaks: list[Json]) -> Classes:
    """Return what refleak says of the blocks that the program's own makers made."""
    found: Classes = Counter()
    for leak in leaks:
        name = maker(functions(callers(leak))).partition("(")[0]
        if name and leak["kind"] == "allocation" and leak["state"] == "leaked":
            word = "reachable" if leak["reachability"] == "stack" else leak["reachability"]
            found[word, name] += leak["count"]
    return found


def memcheck(command: list[str], folder: Path) -> Classes:
    output = folder / "memcheck-%p.xml"
    for old in folder.glob("memcheck-*.xml"):
        old.unlink()
    options = ["--leak-check=full", "--show-leak-kinds=all", "--run-libc-freeres=no", "--run-cxx-freeres=no"]
    subprocess.run(
        ["valgrind", "-q", "--xml=yes", f"--xml-file={output}", *options, *command], timeout=100, check=False,
        capture_output=True,
    )  # fmt: skip
    found: Classes = Counter()
    for path in folder.glob("memcheck-*.xml"):
        for error in ElementTree.parse(path).iter("error"):
            name = maker([frame.findtext("fn") for frame in error.iter("frame")]).partition("(")[0]
            word = _OF_MEMCHECK.get(error.findtext("kind") or "")
            if word and name:
                found[word, name] += int(error.findtext("xwhat/leakedblocks") or 0)
    return found


def traced(refleak: Refleak, program: Path, *arguments: str) -> Run:
    run = refleak("--reachability", "auto", target=(program, *arguments))
    assert run.report["complete"], run.report["lost"]
    return run


SIZE = 48
SHAPES = {
    "list": {"reachable": 13}, "tree": {"lost": 4, "indirect": 5}, "cycles": {"lost": 1, "indirect": 5},
    "interior": {"possible": 3}, "local": {"reachable": 2}, "pool": {"reachable": 7}, "freed": {"lost": 1},
    "thread": {"reachable": 2}, "stack": {"reachable": 2}, "quick": {"reachable": 13, "lost": 4, "indirect": 5},
    "abort": {"reachable": 13, "lost": 4, "indirect": 5}, "ended-by-thread": {"reachable": 2, "lost": 1},
    "all": {"reachable": 22, "lost": 6, "indirect": 10},
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_are_classed_as_by_memcheck(refleak: Refleak, programs: Path, tmp_path: Path, shape: str) -> None:
    ours = told(traced(refleak, programs / "shapes", shape).leaks)
    blocks: Counter[str] = Counter()
    for (word, _), number in ours.items():
        blocks[word] += number
    assert blocks == SHAPES[shape]
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed: classes are as expected, but not held against its")
    assert ours == memcheck([str(programs / "shapes"), shape], tmp_path)


@pytest.mark.parametrize("shape", ["list", "tree", "cycles", "interior", "local", "stack", "quick", "abort"])
def test_a_static_program_is_looked_into(refleak: Refleak, programs: Path, shape: str) -> None:
    """This one forks and does not execute: all of libc that is in it is what it calls."""
    run = traced(refleak, programs / "shapes-static", shape)
    assert [scan["reason"] for scan in run.report["scans"]] == [None]
    blocks: Counter[str] = Counter()
    for (word, _), number in told(run.leaks).items():
        blocks[word] += number
    assert blocks == SHAPES[shape]


def test_containers(refleak: Refleak, programs: Path, tmp_path: Path) -> None:
    run = traced(refleak, programs / "containers")
    ours = told(run.leaks)
    assert ours == {
        ("reachable", "make_array"): 1, ("reachable", "make_both"): 1, ("reachable", "make_sized"): 1,
        ("possible", "make_inside"): 1, ("lost", "make_lost"): 1,
    }  # fmt: skip
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed: classes are as expected, but not held against its")
    assert ours == memcheck([str(programs / "containers")], tmp_path)


def test_what_calls_of_libc_give_is_lost_as_by_memcheck(refleak: Refleak, programs: Path, tmp_path: Path) -> None:
    """What libc keeps to itself is set aside; what it gave to somebody who dropped it is not, nor any part of that."""

    def lost(classes: Classes) -> Counter[str]:
        """By maker: of two that hold each other either may be called the owner."""
        found: Counter[str] = Counter()
        for (word, name), blocks in classes.items():
            found[name] += blocks if word in ("lost", "indirect") else 0
        return +found

    ours = lost(told(traced(refleak, programs / "libc_calls").leaks))
    assert (ours["make_strdup"], ours["make_iconv_open2"], ours["make_setenv"]) == (1, 3, 0)
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed: classes are as expected, but not held against its")
    assert ours == lost(memcheck([str(programs / "libc_calls")], tmp_path))


def test_the_books_of_no_arena_hold_a_block(refleak: Refleak, programs: Path, tmp_path: Path) -> None:
    """The top of the heap begins in the last word of the block below it, and a free chunk in that of the one before."""
    ours = told(traced(refleak, programs / "last_block").leaks)
    assert ours == {("lost", "make_last"): 1, ("lost", "make_before_free"): 1, ("reachable", "make_kept"): 1}
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed: classes are as expected, but not held against its")
    assert ours == memcheck([str(programs / "last_block")], tmp_path)


def test_what_sizes_are_rounded_up_to_is_used_by_who_asks_for_it(
    refleak: Refleak, programs: Path, tmp_path: Path
) -> None:
    ours = told(traced(refleak, programs / "rounded").leaks)
    assert ours == {("lost", "make_lost"): 1}
    assert told(traced(refleak, programs / "asks").leaks) == {("reachable", "make_lost"): 1}
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed: classes are as expected, but not held against its")
    assert ours == memcheck([str(programs / "rounded")], tmp_path)


def test_all_of_a_page_of_pvalloc_is_the_programs(refleak: Refleak, programs: Path) -> None:
    """memcheck ends such a program."""
    found = told(traced(refleak, programs / "pages").leaks)
    assert found == {("reachable", "make_held"): 1, ("lost", "make_lost"): 1}


def test_the_last_stack_is_told_apart(refleak: Refleak, programs: Path) -> None:
    run = traced(refleak, programs / "shapes", "stack")
    assert {leak["reachability"] for leak in run.below("main")} == {"stack"}
    assert run.report["scans"][0]["looked_into"]


@pytest.mark.parametrize("name", ["shapes", "shapes-static"])
def test_a_child_that_ends(refleak: Refleak, programs: Path, name: str) -> None:
    """Its own blocks: one hangs below a block that it has a copy of, one is lost."""
    run = refleak("--reachability", "auto", target=(programs / name, "child"))
    child = next(p["pid"] for p in run.report["processes"] if p["parent"] is not None)
    own = [leak for leak in run.leaks if leak["pid"] == child and leak["state"] != "inherited"]
    if not run.report["complete"]:  # no time was given to it: then nothing is called lost that may be held
        assert ("make_inside", "lost") not in {(maker(functions(callers(leak))), leak["reachability"]) for leak in own}
        return
    assert {(maker(functions(callers(leak))), leak["reachability"]) for leak in own} == {
        ("make_inside", "reachable"), ("make_lost", "lost"),
    }  # fmt: skip


@pytest.mark.parametrize("turn", range(3))
def test_what_frames_that_are_over_left_holds_nothing(refleak: Refleak, turn: int) -> None:
    """Below the stack, at the entry of _exit, what the dynamic linker has not happened to write over stands."""
    run = refleak("--reachability", "auto", "--max-objects", 100_000 + turn, target=("many_children", 8, 1))
    if run.report["complete"]:
        mine = run.below("in_child", "allocation")
        assert {leak["reachability"] for leak in mine} == {"lost"}
        assert sum(leak["count"] for leak in mine) == 24


def test_a_killed_target_is_not_looked_into(refleak: Refleak, programs: Path) -> None:
    run = traced(refleak, programs / "shapes", "killed")
    assert [scan["reason"] for scan in run.report["scans"]] == ["it was killed by SIGKILL"]
    assert {leak["reachability"] for leak in run.leaks} == {None}
    assert {leak["reachability_reason"] for leak in run.leaks} == {"it was killed by SIGKILL"}
    assert {leak["state"] for leak in run.leaks} == {"outstanding"}, "what held it is not known"


def test_what_is_more_than_may_be_read_is_not_looked_into(refleak: Refleak, programs: Path) -> None:
    run = refleak("--reachability", "auto", "--max-scan", "16K", target=(programs / "shapes", "tree"))
    (scan,) = run.report["scans"]
    assert re.fullmatch(r"0\.\d MiB of its memory are to be read, more than --max-scan permits", scan["reason"])
    assert {leak["reachability"] for leak in run.leaks} == {None}
    assert {leak["reachability_reason"] for leak in run.leaks} == {scan["reason"]}
    run = refleak("--reachability", "auto", "--max-scan", "1G", target=(programs / "shapes", "tree"))
    assert [scan["reason"] for scan in run.report["scans"]] == [None]


def test_owners(refleak: Refleak, programs: Path) -> None:
    run = traced(refleak, programs / "shapes", "tree")
    (leader,) = run.below("make_leader")
    assert leader["below"] == {"count": 5, "bytes": 5 * SIZE}
    below = run.below("make_below")
    assert {(leak["reachability"], leak["owner"]) for leak in below} == {("indirect", leader["id"])}


@pytest.mark.parametrize(("shape", "options", "status"), [
    ("list", (), 0), ("tree", (), 9), ("interior", (), 9), ("stack", (), 0), ("list", ("--fail-on", "reachable"), 9),
    ("stack", ("--fail-on", "stack"), 9), ("interior", ("--fail-on", "lost,errors"), 0),
])  # fmt: skip
def test_exit_status(refleak: Refleak, programs: Path, shape: str, options: tuple[str, ...], status: int) -> None:
    """By default as memcheck's --errors-for-leak-kinds: lost and possibly lost."""
    run = refleak(
        "--reachability", "auto", "--no-mappings", "--error-exitcode", 9, *options, target=(programs / "shapes", shape)
    )
    assert run.status == status, run.stderr


def test_refs_only_says_that_it_was_not_looked_into(refleak: Refleak) -> None:
    run = refleak("--reachability", "auto", "--refs-only", target=("refs_leak",))
    assert {leak["reachability_reason"] for leak in run.leaks} == {"blocks were not traced (--refs-only)"}
