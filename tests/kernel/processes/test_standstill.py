"""Standstills of refleak and its target together, as of a machine that is frozen, or by Ctrl-Z: nothing is lost."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psutil
import pytest
from live_refleak import live_refleak, take_turns, wait_for

pytestmark = pytest.mark.needs("holds")

LONGER_THAN_A_HEARTBEAT = 1.0
STANDSTILLS = 4
PATIENCE_SECONDS = 10


def stopped(pid: int) -> list[psutil.Process]:
    """Stop a process and its children, refleak still at work: whoever is held goes on and stops."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        target = psutil.Process(pid)
        family = [target, *target.children(recursive=True)]
        for process in family:
            process.send_signal(signal.SIGSTOP)
        time.sleep(0.01)
        family = [target, *target.children(recursive=True)]
        states = {process.status() for process in family}
        if states <= {psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE}:
            return family
    raise TimeoutError("it does not stop")


@pytest.mark.parametrize("kind", ["execs", "libraries"])
def test_all_stand_still(targets: Path, tmp_path: Path, kind: str) -> None:
    """The target goes on first: what it does then waits for refleak, whose heartbeat is old."""
    with live_refleak(tmp_path / "report", "--exec", targets / "paces", kind) as refleak:
        assert refleak.line() == b"ready\n"
        for _ in range(STANDSTILLS):
            family = stopped(refleak.child())
            refleak.signal(signal.SIGSTOP)
            time.sleep(LONGER_THAN_A_HEARTBEAT)
            for process in family:
                process.send_signal(signal.SIGCONT)
            time.sleep(0.1)
            refleak.signal(signal.SIGCONT)
            take_turns(refleak)
        refleak.tell(b"x")
        run = refleak.end()
    run.check_whole()


@pytest.mark.parametrize("kind", ["forks", "execs", "libraries"])
def test_stopped_by_the_terminal(targets: Path, tmp_path: Path, kind: str) -> None:
    """Ctrl-Z stops whoever refleak holds only once it is released: refleak stops after it."""
    with live_refleak(tmp_path / "report", "--exec", targets / "paces", kind, is_job=True) as refleak:
        assert refleak.line() == b"ready\n"
        for _ in range(STANDSTILLS):
            os.killpg(refleak.pid, signal.SIGTSTP)
            wait_for(lambda: psutil.Process(refleak.pid).status() == psutil.STATUS_STOPPED, "refleak to stop")
            assert psutil.Process(refleak.child()).status() == psutil.STATUS_STOPPED
            time.sleep(LONGER_THAN_A_HEARTBEAT)
            os.killpg(refleak.pid, signal.SIGCONT)
            take_turns(refleak)
        refleak.tell(b"x")
        run = refleak.end()
    run.check_whole()


def test_a_target_that_does_not_stop_is_traced_on(targets: Path, tmp_path: Path) -> None:
    """Nobody could continue a group without a parent in its session, so the kernel stops none of it."""
    with live_refleak(tmp_path / "report", "--exec", targets / "paces", "forks") as refleak:
        assert refleak.line() == b"ready\n"
        os.killpg(refleak.pid, signal.SIGTSTP)
        take_turns(refleak)
        time.sleep(LONGER_THAN_A_HEARTBEAT)
        assert psutil.Process(refleak.pid).status() != psutil.STATUS_STOPPED
        refleak.tell(b"x")
        run = refleak.end()
    run.check_whole()
