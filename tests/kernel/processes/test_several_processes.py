"""refleak -p with several processes: by number, by name, by cgroup, and a process with all that descends from it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from conftest import LiveTarget
from live_refleak import let_end, live_refleak


@pytest.mark.parametrize("apart", [True, False])
def test_a_second_pid_adds(live_target: LiveTarget, tmp_path: Path, apart: bool) -> None:
    with live_target("attach") as first, live_target("attach") as second:
        words = ("-p", first.pid, "-p", second.pid) if apart else ("-p", f"{first.pid},{second.pid}")
        with live_refleak(tmp_path / "report", *words) as refleak:
            refleak.wait_until_attached()
            for target in (first, second):
                let_end(target)
            run = refleak.end()
    run.check_whole()
    assert run.alive("allocation") == [("malloc", "leak_after_attach", 19, 3173)] * 2
    assert {process["pid"] for process in run.report["processes"]} == {first.pid, second.pid}
    assert {leak["pid"] for leak in run.leaks} == {first.pid, second.pid}


def test_the_first_to_end_does_not_end_the_trace(live_target: LiveTarget, tmp_path: Path) -> None:
    with (
        live_target("attach") as first, live_target("attach") as second,
        live_refleak(tmp_path / "report", "-p", first.pid, "-p", second.pid) as refleak,
    ):  # fmt: skip
        refleak.wait_until_attached()
        first.kill()
        first.wait()
        let_end(second)
        run = refleak.end()
    assert run.alive("allocation") == [("malloc", "leak_after_attach", 19, 3173)]


def test_a_tree_has_the_children_that_run_already(live_target: LiveTarget, tmp_path: Path) -> None:
    with live_target("older_workers") as target, live_refleak(
        tmp_path / "report", "-p", target.pid, "--tree"
    ) as refleak:
        refleak.wait_until_attached()
        let_end(target)
        run = refleak.end()
    run.check_whole()
    assert run.report["probes"]["untraced"] == []
    assert Counter(leak["count"] for leak in run.below("keep")) == {7: 3}
    assert len({leak["pid"] for leak in run.below("keep")}) == 3


def test_a_tree_whose_children_come_and_go(live_target: LiveTarget, tmp_path: Path) -> None:
    """One that had ended since it was listed was an error, and nothing was traced; one that was forked since went
    without a word."""
    with live_target("busy_family") as target, live_refleak(
        tmp_path / "report", "-p", target.pid, "--tree"
    ) as refleak:
        refleak.wait_until_attached()
        let_end(target)
        run = refleak.end()
    assert Counter(leak["count"] for leak in run.below("keep")) == {7: 2}
    reasons = {untraced["reason"] for untraced in run.report["probes"]["untraced"]}
    assert reasons <= {"it was forked while refleak attached to its parent"}


def test_a_name_stands_for_all_that_run_it(targets: Path, tmp_path: Path) -> None:
    name = f"named-{os.getpid()}"
    shutil.copy(targets / "attach", tmp_path / name)
    started = [subprocess.Popen([tmp_path / name], stdin=-1, stdout=-1, bufsize=0) for _ in range(2)]
    try:
        assert all(target.stdout is not None and target.stdout.readline() == b"ready\n" for target in started)
        with live_refleak(tmp_path / "report", "-p", name) as refleak:
            refleak.wait_until_attached()
            for target in started:
                let_end(target)
            run = refleak.end()
    finally:
        for target in started:
            target.kill()
            target.wait()
    assert run.alive("allocation") == [("malloc", "leak_after_attach", 19, 3173)] * 2
