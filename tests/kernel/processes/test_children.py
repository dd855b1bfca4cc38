"""Children: forked, exec'd, spawned, and what each of them leaves."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import Refleak
from traced_report import Run, callers, functions

pytestmark = pytest.mark.needs("holds")


def of(run: Run, function: str) -> list[tuple[int, str, int, int]]:
    """Return (pid, state, count, bytes) of the allocations below a function, in order of the processes' start."""
    order = [process["pid"] for process in run.report["processes"]]
    return sorted(
        ((leak["pid"], leak["state"], leak["count"], leak["bytes"]) for leak in run.below(function, "allocation")),
        key=lambda leak: (order.index(leak[0]), *leak),
    )


def processes(run: Run) -> list[dict[str, Any]]:
    return list(run.report["processes"])


def test_a_fork_without_exec(refleak: Refleak) -> None:
    run = refleak(target=("fork_no_exec",))
    run.check_whole()
    parent, child = processes(run)
    assert (parent["parent"], child["parent"]) == (None, parent["pid"])
    assert of(run, "before_fork") == [
        (parent["pid"], "leaked", 11, 407), (child["pid"], "inherited", 8, 296),
    ]  # fmt: skip
    assert of(run, "in_child") == [(child["pid"], "leaked", 7, 287)]
    assert run.blocks == (20, 2, 18, 694)
    assert run.report["errors"] == []
    assert run.report["notes"] == []


@pytest.mark.parametrize("links", [3, 7])
def test_a_chain_of_forks_and_execs(refleak: Refleak, links: int) -> None:
    run = refleak(target=("fork_exec_chain", links))
    run.check_whole()
    counts = [2, 3, 5, 7, 11, 13, 17, 19][: links + 1]
    by_pid: dict[int, int] = {leak[0]: leak[2] for leak in of(run, "leak_in_link") if leak[1] == "leaked"}
    assert sorted(by_pid.values()) == counts
    assert [leak for leak in of(run, "leak_in_link") if leak[1] == "inherited"] == []  # exec ended the copies
    assert [leak[1:] for leak in of(run, "between_fork_and_exec")] == [("alive-at-exec", 3, 177)] * links
    commands = [process["command"][-1] for process in processes(run)]
    assert set(commands) == {str(link) for link in range(links + 1)}
    assert len({process["pid"] for process in processes(run)}) == links + 1
    assert all(process["ended"] is not None for process in processes(run))


@pytest.mark.parametrize(
    ("target", "parents", "childs"),
    [
        (("vfork_exec",), "before_vfork", "after_vfork_exec"),
        (("posix_spawn",), "before_spawn", "in_spawned"),
        (("shell_child", "system"), "before_shell", "below_shell"),
        (("shell_child", "popen"), "before_shell", "below_shell"),
    ],
)
def test_a_child_that_shares_memory_until_its_exec(
    refleak: Refleak, target: tuple[str, ...], parents: str, childs: str
) -> None:
    run = refleak(target=target)
    run.check_whole()
    first = processes(run)[0]
    assert of(run, parents) == [(first["pid"], "leaked", 11, 473)]
    [(pid, state, count, size)] = of(run, childs)
    assert (pid != first["pid"], state, count, size) == (True, "leaked", 5, 235)
    [entry] = [process for process in processes(run) if process["pid"] == pid and not process["ended"]["by_exec"]]
    assert entry["command"][-1] == "child"
    assert entry["ended"]["code"] == 0
    if target[0] != "shell_child":
        assert entry["parent"] == first["pid"]


def test_exec_with_live_blocks(refleak: Refleak) -> None:
    run = refleak(target=("exec_live",))
    run.check_whole()
    before, after = processes(run)
    assert before["pid"] == after["pid"]
    assert (before["ended"]["by_exec"], after["ended"]["code"]) == (True, 0)
    assert after["command"] == ["exec_live", "after"]
    assert of(run, "before_exec") == [(before["pid"], "alive-at-exec", 17, 1037)]
    assert of(run, "after_exec") == [(after["pid"], "leaked", 7, 497)]


def test_a_child_that_outlives_its_parent(refleak: Refleak) -> None:
    run = refleak(target=("orphan",))
    run.check_whole()
    parent, child = processes(run)
    assert of(run, "in_parent") == [(parent["pid"], "leaked", 11, 407), (child["pid"], "inherited", 11, 407)]
    assert of(run, "after_the_parent") == [(child["pid"], "leaked", 7, 287)]
    assert (parent["ended"]["code"], child["ended"]["code"]) == (0, 5)
    assert child["parent"] == parent["pid"]


def test_threads_that_fork_at_once(refleak: Refleak) -> None:
    run = refleak(target=("thread_fork",))
    run.check_whole()
    parent = processes(run)[0]
    children = {process["pid"] for process in processes(run)[1:]}
    assert len(children) == 7
    assert of(run, "in_thread")[0] == (parent["pid"], "leaked", 14, 938)
    childs = of(run, "in_child_of_thread")
    assert [leak[1:] for leak in childs] == [("leaked", 3, 213)] * 7
    assert {leak[0] for leak in childs} == children


def test_a_library_that_only_a_child_loads(refleak: Refleak) -> None:
    run = refleak(target=("dlopen_in_child",))
    run.check_whole()
    _, child = processes(run)
    [leak] = run.below("leak_in_a", "allocation")
    assert (leak["pid"], leak["state"], leak["count"], leak["bytes"]) == (child["pid"], "leaked", 13, 1157)
    assert functions(callers(leak))[:2] == ["leak_in_a", "construct_a"]
    assert callers(leak)[0]["module"] == "liba.so"
    assert functions(callers(leak))[-1] == "_start"
    assert leak["stack_complete"]


def test_a_child_made_past_libc_is_counted(refleak: Refleak) -> None:
    run = refleak(target=("raw_clone",))
    assert run.status == 0
    assert run.report["complete"] is False
    [(reason, count)] = run.lost.items()
    assert count == 1 and "not made by fork()" in reason
    parent, _ = processes(run)
    assert [leak for leak in of(run, "in_parent") if leak[0] == parent["pid"]] == [(parent["pid"], "leaked", 3, 111)]


def test_a_child_made_past_libc_that_executes_a_program_is_counted(refleak: Refleak) -> None:
    run = refleak(target=("raw_clone", "/bin/true"))
    assert (run.status, run.report["complete"]) == (0, False)
    [(reason, count)] = run.lost.items()
    assert count == 1 and "not made by fork()" in reason


def test_an_exec_past_libc_of_a_static_program_is_told(refleak: Refleak, targets: Path) -> None:
    run = refleak(target=("raw_exec", targets / "short-static"))
    assert (run.status, run.report["complete"]) == (0, False)
    [(reason, count)] = run.lost.items()
    assert count == 1 and "its exec was not seen" in reason
    assert [leak[1:] for leak in of(run, "before_exec")] == [("alive-at-exec", 3, 111)]


def test_an_exec_past_libc_into_the_same_loader_is_traced(refleak: Refleak, targets: Path) -> None:
    """By the probes that the process has there."""
    run = refleak(target=("raw_exec", targets / "exec_live", "after"))
    assert [leak[1:] for leak in of(run, "after_exec")] == [("leaked", 7, 497)]


def test_children_are_left_alone_when_forks_are_not_followed(refleak: Refleak) -> None:
    run = refleak("--no-follow-forks", target=("fork_no_exec",))
    run.check_whole()
    [parent] = processes(run)
    assert of(run, "before_fork") == [(parent["pid"], "leaked", 11, 407)]
    assert of(run, "in_child") == []
    assert run.blocks == (13, 2, 11, 407)


def test_a_program_with_rights_of_its_own_is_told(refleak: Refleak, targets: Path, tmp_path: Path) -> None:
    """The kernel takes what it would be held by from it."""
    program = shutil.copy(targets / "clean", tmp_path / "program")
    os.chown(program, 0, 1)
    program.chmod(0o2755)
    run = refleak(target=("/bin/sh", "-c", f"{program}; true"))
    [(reason, count)] = run.lost.items()
    assert count == 1 and reason.endswith("it has rights of its own (setuid, setgid)")
