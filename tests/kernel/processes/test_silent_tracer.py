"""refleak that stops for a while, or for ever: whoever it holds goes on at once, and the report says so."""

from __future__ import annotations

import fcntl
import signal
from pathlib import Path

import pytest
from bpf_residue import Residue
from live_refleak import live_refleak, take_turns
from traced_report import HOLD_EXPIRED

pytestmark = pytest.mark.needs("holds")

WAITING_REFLEAK = Path(__file__).parent / "waiting_refleak"


@pytest.mark.parametrize("kind", ["forks", "execs", "libraries"])
def test_stopped_and_continued(targets: Path, tmp_path: Path, kind: str) -> None:
    with live_refleak(tmp_path / "report", "--exec", targets / "paces", kind) as refleak:
        assert refleak.line() == b"ready\n"
        take_turns(refleak)
        refleak.signal(signal.SIGSTOP)
        take_turns(refleak)
        refleak.signal(signal.SIGCONT)
        take_turns(refleak)
        refleak.tell(b"x")
        run = refleak.end()
    assert run.status == 0, run.stderr
    assert run.report["complete"] is False
    assert run.lost[HOLD_EXPIRED] >= 1
    assert " turns, longest " in run.stdout


@pytest.mark.parametrize("kind", ["forks", "execs", "libraries"])
def test_killed(targets: Path, tmp_path: Path, kind: str) -> None:
    residue = Residue()
    with live_refleak(tmp_path / "report", "--exec", targets / "paces", kind) as refleak:
        assert refleak.line() == b"ready\n"
        take_turns(refleak)
        target = refleak.child()
        refleak.signal(signal.SIGKILL)
        take_turns(refleak)
        refleak.process.wait()
        assert residue.left(target) == []
        refleak.tell(b"x")
        assert b" turns, longest " in refleak.line()


def test_too_busy_to_answer(targets: Path, tmp_path: Path) -> None:
    """After the first hold that expired the others do not wait, as long as refleak beats but does not answer."""
    variables = {"WAIT_FOR": str(tmp_path / "lock")}
    with (tmp_path / "lock").open("w") as lock, live_refleak(
        tmp_path / "report", "--exec", targets / "paces", "forks", variables=variables, program=WAITING_REFLEAK
    ) as refleak:  # fmt: skip
        assert refleak.line() == b"ready\n"
        take_turns(refleak)
        fcntl.flock(lock, fcntl.LOCK_EX)
        take_turns(refleak)
        fcntl.flock(lock, fcntl.LOCK_UN)
        take_turns(refleak)
        refleak.tell(b"x")
        run = refleak.end()
    assert run.status == 0, run.stderr
    assert run.lost[HOLD_EXPIRED] >= 1
