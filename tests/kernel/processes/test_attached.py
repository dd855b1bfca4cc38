"""refleak -p: what is older than the trace is no error and no leak, and the target runs on."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from conftest import LiveTarget
from live_refleak import LiveRefleak, let_end, live_refleak
from traced_report import Run


def check_attach(run: Run) -> None:
    run.check_whole()
    assert run.report["mode"] == "attached"
    assert run.report["errors"] == []
    assert run.alive("allocation") == [("malloc", "leak_after_attach", 19, 3173)]
    assert run.leaks[0]["state"] == "outstanding"
    assert run.blocks == (19, 0, 19, 3173)
    assert any(note.startswith("5 frees of ") for note in run.report["notes"])


def test_ctrl_c_ends_the_trace_and_not_the_target(live_target: LiveTarget, tmp_path: Path) -> None:
    with live_target("attach") as target, live_refleak(tmp_path / "report", "-p", target.pid) as refleak:
        assert target.stdin is not None and target.stdout is not None
        refleak.wait_until_attached()
        target.stdin.write(b"x")
        assert target.stdout.readline() == b"done\n"
        refleak.signal(signal.SIGINT)
        check_attach(refleak.end())
        assert target.poll() is None
        target.stdin.close()
        assert target.wait() == 0


def test_the_target_ends_by_itself(live_target: LiveTarget, tmp_path: Path) -> None:
    with live_target("attach") as target, live_refleak(tmp_path / "report", "-p", target.pid) as refleak:
        refleak.wait_until_attached()
        let_end(target)
        run = refleak.end()
    run.check_whole()
    assert run.alive("allocation") == [("malloc", "leak_after_attach", 19, 3173)]
    assert run.report["processes"][0]["ended"] is not None


def test_duration(live_target: LiveTarget, tmp_path: Path) -> None:
    words = ("--duration", "0.5", "-p")
    with live_target("attach") as target, live_refleak(tmp_path / "report", *words, target.pid) as refleak:
        run = refleak.end()
        assert target.poll() is None
    run.check_whole()
    assert run.report["duration_ns"] >= 500_000_000
    assert run.report["leaks"] == []


def test_threads_that_were_there_before(live_target: LiveTarget, tmp_path: Path) -> None:
    with live_target("attach_threads") as target, live_refleak(tmp_path / "report", "-p", target.pid) as refleak:
        assert target.stdin is not None and target.stdout is not None
        refleak.wait_until_attached()
        target.stdin.write(b"x")
        assert target.stdout.readline() == b"done\n"
        refleak.signal(signal.SIGINT)
        run = refleak.end()
    run.check_whole()
    [leak] = run.below("leak_in_thread", "allocation")
    assert (leak["count"], leak["bytes"], leak["made"], leak["freed"]) == (49, 8477, 77, 28)
    assert leak["state"] == "outstanding"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_requests_to_end_report_too(
    live_target: LiveTarget, tmp_path: Path, number: signal.Signals
) -> None:
    with live_target("attach") as target, live_refleak(tmp_path / "report", "-p", target.pid) as refleak:
        refleak.wait_until_attached()
        refleak.signal(number)
        run = refleak.end()
        assert target.poll() is None
    run.check_whole()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_stopped_target_stays_stopped(live_target: LiveTarget, tmp_path: Path) -> None:
    with live_target("attach") as target:
        target.send_signal(signal.SIGSTOP)
        words = ("--duration", "0.3", "-p", target.pid)
        with live_refleak(tmp_path / "report", *words) as refleak:
            _check_stopped(refleak, target.pid)
        assert _state(target.pid) == "T"
        target.send_signal(signal.SIGCONT)


def _check_stopped(refleak: LiveRefleak, pid: int) -> None:
    refleak.wait_until_attached()
    assert _state(pid) == "T"
    assert refleak.end().status == 0
