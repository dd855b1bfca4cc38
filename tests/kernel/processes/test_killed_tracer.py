"""SIGKILL of refleak at any moment: the target runs on to its right end, and no probe stays behind."""

from __future__ import annotations

import random
import select
import signal
from pathlib import Path

import pytest
from bpf_residue import Residue
from conftest import LiveTarget
from live_refleak import live_refleak, wait_for
from text_in_memory import changed_text

SEED = 20261121
MOMENTS = [random.Random(SEED + index).uniform(0, 1.2) for index in range(10)]


def wait_a_moment(seconds: float) -> None:
    """Let a random time pass: when the kill comes is what is tried here, not what is waited for."""
    select.select([], [], [], seconds)


def check_clean(pid: int, residue: Residue) -> None:
    wait_for(lambda: not changed_text(pid), f"the breakpoints to go: {changed_text(pid)[:3]}")
    assert residue.left(pid) == []


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_attached_target(live_target: LiveTarget, tmp_path: Path, moment: float) -> None:
    residue = Residue()
    with live_target("busy") as target:
        assert target.stdin is not None and target.stdout is not None
        with live_refleak(tmp_path / "report", "-p", target.pid) as refleak:
            wait_a_moment(moment)
            refleak.signal(signal.SIGKILL)
            refleak.process.wait()
        assert target.poll() is None
        check_clean(target.pid, residue)
        target.stdin.write(b"x")
        assert target.stdout.readline() == b"ended well\n"
        assert target.wait() == 0


@pytest.mark.parametrize("moment", MOMENTS[:3])
def test_a_launched_target(targets: Path, tmp_path: Path, moment: float) -> None:
    residue = Residue()
    with live_refleak(tmp_path / "report", "--exec", targets / "busy") as refleak:
        assert refleak.line() == b"ready\n"
        pid = refleak.child()
        wait_a_moment(moment)
        refleak.signal(signal.SIGKILL)
        refleak.process.wait()
        check_clean(pid, residue)
        refleak.tell(b"x")
        assert refleak.line() == b"ended well\n"
        wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the target's end")


def test_before_the_launch(targets: Path, tmp_path: Path) -> None:
    with live_refleak(tmp_path / "report", "--exec", targets / "on_signal") as refleak:
        pid = refleak.child()
        refleak.signal(signal.SIGKILL)
        refleak.process.wait()
        wait_for(
            lambda: not Path(f"/proc/{pid}").exists() or Path(f"/proc/{pid}/comm").read_text() == "on_signal\n",
            "the child to end, or to have become the target",
        )
        assert refleak.process.stdout is not None
        if not Path(f"/proc/{pid}").exists():
            assert refleak.process.stdout.read() == b""
