"""Frees that break a rule are errors, each once and at its place; correct programs have none. Target: bad_frees.c."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest
from bad_frees_program import build_bad_frees
from conftest import CHECKOUT, LiveTarget, Refleak
from traced_report import HOLD_EXPIRED, NOT_HELD, Json, Run, functions, run_in_turns

POOL = "alloc pool:alloc=pool_alloc(size=arg0),free=pool_free,realloc=pool_realloc(size=arg1)"
ABORTED, CRASHED = 128 + signal.SIGABRT, 128 + signal.SIGSEGV


@pytest.fixture(scope="module")
def bad_frees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_bad_frees(tmp_path_factory.mktemp("errors"))


def the_error(run: Run) -> Json:
    assert (run.report["lost"], run.report["notes"]) == ([], [])
    (error,) = run.report["errors"]
    return dict(error)


def named(stack: list[Json] | None, count: int) -> list[str | None]:
    return functions(stack or [])[:count]


DOUBLE = (
    ("adjacent", ["again", "main"], ABORTED), ("others", ["again", "main"], None), ("reused", ["again", "main"], None),
    ("thread", ["again", "in_thread"], None), ("realloc", ["again_by_realloc", "main"], None),
    ("realloc-zero", ["again_by_realloc", "main"], None),
    ("pointer", ["again_by_pointer", "main"], ABORTED),
    ("wrapper", ["my_free", "again_by_wrapper", "main"], ABORTED),
)  # fmt: skip


@pytest.mark.parametrize(("case", "offence", "status"), DOUBLE, ids=[case for case, _, _ in DOUBLE])
def test_a_double_free_has_three_stacks(
    refleak: Refleak, bad_frees: Path, case: str, offence: list[str], status: int | None
) -> None:
    run = refleak(target=(bad_frees, case))
    error = the_error(run)
    assert (error["kind"], error["type"], error["count"]) == ("double-free", None, 1)
    assert error["reason"] == "a block of 101 bytes"
    assert named(error["stack"], len(offence)) == offence
    reused = case == "reused"
    assert named(error["released_at"], 2 - reused) == (["main"] if reused else ["drop", "main"])
    assert named(error["created_at"], 3 - reused) == ["malloc", *(["main"] if reused else ["make", "main"])]
    assert status in (None, run.status)


@pytest.mark.parametrize("case", ["moved", "emptied"])
def test_where_a_realloc_freed_it_is_the_first_place(refleak: Refleak, bad_frees: Path, case: str) -> None:
    error = the_error(refleak(target=(bad_frees, case)))
    assert (error["kind"], error["count"], error["reason"]) == ("double-free", 1, "a block of 101 bytes")
    stacks = [named(error[stack], 2) for stack in ("stack", "released_at")]
    assert stacks == [["again", "main"], ["move", "main"]]


def test_a_big_block_that_is_gone_with_its_mapping(refleak: Refleak, bad_frees: Path) -> None:
    run = refleak(target=(bad_frees, "mapped"))
    error = the_error(run)
    assert (run.status, error["kind"], error["reason"]) == (CRASHED, "double-free", "a block of 1,048,576 bytes")
    stacks = [named(error[stack], 1) for stack in ("stack", "released_at", "created_at")]
    assert stacks == [["again"], ["drop"], ["malloc"]]
    assert named(error["created_at"], 2) == ["malloc", "make"]


@pytest.mark.parametrize("case", ["child", "inherited", "inherited-freed"])
def test_a_double_free_in_a_forked_child(refleak: Refleak, bad_frees: Path, case: str) -> None:
    """Of a block of its own, of one of its parent's, and of one that its parent freed before the fork."""
    run = run_in_turns(lambda _: refleak(target=(bad_frees, case)), {HOLD_EXPIRED, NOT_HELD})
    error = the_error(run)
    assert (error["kind"], error["count"], named(error["stack"], 2)) == ("double-free", 1, ["again", "in_child"])
    assert error["pid"] != run.report["processes"][0]["pid"]
    assert error["reason"] == "a block of 101 bytes"
    assert named(error["created_at"], 3) == ["malloc", "make", "in_child"]
    assert named(error["released_at"], 2) == ["drop", "in_child"]


@pytest.mark.parametrize(("case", "first"), [("pool", "pool_drop"), ("pool-moved", "pool_move")])
def test_a_described_allocators_block_is_freed_four_times(
    refleak: Refleak, bad_frees: Path, case: str, first: str
) -> None:
    run = refleak("--type", POOL, target=(bad_frees, case))
    error = the_error(run)
    assert (error["kind"], error["type"], error["count"]) == ("double-free", "pool", 3)
    assert named(error["stack"], 2) == ["pool_again", "use_pool"]
    assert named(error["released_at"], 2) == [first, "use_pool"]
    assert named(error["created_at"], 3) == ["pool_alloc", "pool_make", "use_pool"]
    assert run.status == 0


def test_a_described_allocators_block_is_given_to_free(refleak: Refleak, bad_frees: Path) -> None:
    run = refleak("--type", POOL, target=(bad_frees, "pools"))
    error = the_error(run)
    assert (error["kind"], error["count"], run.status) == ("mismatched-free", 1, ABORTED)
    assert error["reason"] == "a block of 101 bytes that pool made"
    assert (named(error["stack"], 2), named(error["created_at"], 3)) == (
        ["again", "main"], ["pool_alloc", "pool_make", "main"],
    )


INVALID = (
    ("inner", "24 bytes inside a block of 101", ["again", "main"]),
    ("inner-pointer", "24 bytes inside a block of 101", ["again_by_pointer", "main"]),
    ("inner-realloc", "24 bytes inside a block of 101", ["again_by_realloc", "main"]),
    ("stack", "on the stack of the thread that frees it", ["again", "main"]),
    ("thread-stack", "on the stack of the thread that frees it", ["again", "own_stack"]),
    ("data", "in variable data of bad_frees", ["again", "main"]),
)


@pytest.mark.parametrize(("case", "reason", "offence"), INVALID, ids=[case for case, _, _ in INVALID])
def test_a_free_of_what_is_no_block(
    refleak: Refleak, bad_frees: Path, case: str, reason: str, offence: list[str]
) -> None:
    run = refleak(target=(bad_frees, case))
    error = the_error(run)
    assert (error["kind"], error["count"], error["reason"]) == ("invalid-free", 1, reason)
    assert named(error["stack"], 2) == offence
    assert named(error["created_at"], 3) == (["malloc", "make", "main"] if case.startswith("inner") else [])
    assert (error["released_at"], run.status) == (None, ABORTED)


@pytest.mark.parametrize(
    ("case", "reason"), [(f"child-{case}", reason) for case, reason, _ in INVALID if case in ("inner", "stack", "data")]
)
def test_a_free_of_what_is_no_block_in_a_forked_child(
    refleak: Refleak, bad_frees: Path, case: str, reason: str
) -> None:
    run = refleak(target=(bad_frees, case))
    error = the_error(run)
    assert (error["kind"], error["count"], error["reason"]) == ("invalid-free", 1, reason)
    assert named(error["stack"], 2) == ["again", "bad_in_child"]
    assert named(error["created_at"], 3) == (["malloc", "make", "bad_in_child"] if case == "child-inner" else [])
    assert error["pid"] != run.report["processes"][0]["pid"]


@pytest.mark.parametrize("case", ["stack", "thread-stack"])
def test_the_function_whose_frame_is_freed_where_libc_aborts(refleak: Refleak, bad_frees: Path, case: str) -> None:
    run = refleak("--reachability", "auto", target=(bad_frees, case))
    (error,) = run.report["errors"]
    owner = "main" if case == "stack" else "own_stack"
    assert (error["kind"], error["count"], error["reason"]) == ("invalid-free", 1, f"on the stack of {owner}")
    assert named(error["stack"], 2) == ["again", owner]
    assert (error["created_at"], run.status) == (None, ABORTED)


def test_the_inside_of_what_was_freed_where_libc_aborts(refleak: Refleak, bad_frees: Path) -> None:
    run = refleak("--reachability", "auto", target=(bad_frees, "inner-freed"))
    (error,) = run.report["errors"]
    assert (error["kind"], error["count"], run.status) == ("invalid-free", 1, ABORTED)
    assert error["reason"] == "at no block that is known; the C library ended the program"
    assert [note for note in run.report["notes"] if "free" in note] == []


def test_an_address_of_no_memory(refleak: Refleak, bad_frees: Path) -> None:
    run = refleak(target=(bad_frees, "nowhere"))
    error = the_error(run)
    assert (error["kind"], error["count"]) == ("invalid-free", 1)
    assert error["reason"] == "never allocated: no memory is there"
    assert (named(error["stack"], 2), run.status) == (["again", "main"], CRASHED)


def test_an_address_that_malloc_never_gives(refleak: Refleak, bad_frees: Path) -> None:
    error = the_error(refleak(target=(bad_frees, "behind")))
    assert (error["kind"], error["count"]) == ("invalid-free", 1)
    assert error["reason"] == "never allocated: malloc's blocks are at multiples of 16 bytes"


def test_what_ancestors_made_is_freed_without_a_word(refleak: Refleak, bad_frees: Path) -> None:
    """Seven generations: nearer and farther ancestors, which live, have ended or have freed it themselves."""
    run = run_in_turns(lambda _: refleak(target=(bad_frees, "generations")), {HOLD_EXPIRED, NOT_HELD})
    assert (run.report["lost"], run.report["notes"], run.report["errors"]) == ([], [], [])
    assert [leak for leak in run.report["leaks"] if leak["state"] == "inherited" and leak["bytes"] < 2000] == []


def test_sizes_of_nothing_and_calls_that_fail_are_no_errors(refleak: Refleak, bad_frees: Path) -> None:
    run = refleak(target=(bad_frees, "odd-sizes"))
    assert (run.status, run.report["lost"], run.report["notes"], run.report["errors"]) == (0, [], [], [])
    assert run.leaks == []


@pytest.mark.parametrize("case", ["adjacent", "inner", "stack", "wrapper"])
def test_what_is_made_on_the_way_of_aborting_is_no_leak(refleak: Refleak, bad_frees: Path, case: str) -> None:
    """libc maps a page for its message. The block that was not freed, for it lives on, is the target's own."""
    run = refleak(target=(bad_frees, case))
    assert run.status == ABORTED
    assert {leak["bytes"] for leak in run.leaks} <= {101}
    assert [leak for leak in run.leaks if leak["kind"] == "mapping"] == []


def test_errors_fail_a_run_where_that_is_asked_for(refleak: Refleak, bad_frees: Path) -> None:
    assert refleak("--fail-on", "errors", target=(bad_frees, "pool"), timeout=60).status == 0
    assert refleak("--type", POOL, "--fail-on", "errors", target=(bad_frees, "pool")).status == 1


def test_nothing_is_said_where_no_freed_blocks_are_kept(refleak: Refleak, bad_frees: Path) -> None:
    run = refleak("--keep-freed", "0", target=(bad_frees, "adjacent"))
    assert (run.status, run.report["errors"]) == (ABORTED, [])
    assert run.report["notes"] == ["1 free of something not seen to be made"]


@pytest.mark.parametrize("options", [("--sample-bytes", "512"), ("--max-size", "100")])
def test_nothing_is_said_where_not_all_blocks_are_kept(
    refleak: Refleak, bad_frees: Path, options: tuple[str, str]
) -> None:
    run = refleak(*options, target=(bad_frees, "adjacent"))
    assert (run.status, run.report["errors"]) == (ABORTED, [])


def test_what_was_made_before_the_attach_is_freed_without_a_word(refleak: Refleak, live_target: LiveTarget) -> None:
    with live_target("noise_target") as target:
        run = refleak("--duration", "1", pid=target.pid)
    assert run.report["errors"] == []


CORRECT = (
    ("free_first",), ("threads",), ("cpp",), ("realloc_cases", "grow"), ("realloc_cases", "to_zero"),
    ("alloc_functions", "posix_memalign"), ("thread_fork",), ("fork_no_exec",), ("nested",), ("nested_wrapped",),
    ("threads-static",), ("threads-musl",), ("longjmp",), ("sampled",),
    ("/usr/bin/python3", "-c", "import json, threading; json.dumps({i: [i] for i in range(999)})"),
    ("/usr/bin/git", "-C", str(CHECKOUT), "log", "-20", "--stat"),
    ("/usr/bin/sqlite3", ":memory:", "create table t(a); insert into t values(1); select * from t;"),
    ("/usr/bin/sort", "--parallel=2", "/etc/services"), ("/bin/sh", "-c", "ls / | cat"),
)  # fmt: skip


@pytest.mark.parametrize("target", CORRECT, ids=[" ".join(target[:2])[-24:] for target in CORRECT])
def test_correct_programs_have_no_errors(refleak: Refleak, targets: Path, target: tuple[str, ...]) -> None:
    missing = shutil.which(target[0]) is None and not (targets / target[0]).exists()
    assert not missing or target[0].endswith("-musl")
    if missing:
        pytest.skip("needs musl-tools")
    run = refleak(target=target)
    assert run.report["errors"] == []
    assert [note for note in run.report["notes"] if "free" in note] == []



def test_a_block_that_a_handler_makes_in_the_midst_of_malloc(refleak: Refleak) -> None:
    """It stood for a part of that malloc, and its free, where one was freed before, was a double one."""
    run = refleak(target=("interrupted_malloc", "makes"))
    run.check_whole()
    assert (run.report["errors"], run.report["notes"], run.blocks[:3]) == ([], [], (3, 3, 0))


def test_the_free_of_what_a_missed_return_probe_would_have_told(refleak: Refleak) -> None:
    run = refleak(target=("interrupted_malloc", "hides"))
    assert (run.status, run.report["errors"]) == (0, [])
    assert [reason for reason in run.lost if "never returned" in reason] == list(run.lost) != []


def test_an_allocator_over_another_frees_once(refleak: Refleak, targets: Path) -> None:
    run = refleak("--allocator", targets / "libwrap.so", target=("nested_wrapped",))
    run.check_whole()
    assert run.report["errors"] == []
