"""Events in tracefs that several runs have in common: the next run takes them over, each counts what is its own."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from live_refleak import LiveRefleak, live_refleak, wait_for
from traced_report import HOLD_EXPIRED, Run
from uprobe_list import EVENTS, tell

pytestmark = pytest.mark.needs("holds")

KEPT_SECONDS = 4.0
"""So long the events of a run that has ended are there at least."""


def places(refleak: LiveRefleak, *, others: bool = False) -> list[str]:
    """Return the places, by file and offset, that a run made events of; `others`: that all others made them of."""
    names = (re.match(r"(\w):refleak_(\d+)_\w+/at\d+_(\w+) ", line) for line in EVENTS.read_text().splitlines())
    return [found[1] + found[3] for found in names if found and (int(found[2]) != refleak.pid) == others]


def made(run: Run, function: str) -> int:
    return sum(leak["count"] for leak in run.below(function, "allocation") if leak["state"] != "inherited")


def check(run: Run, parents: int, children: int) -> None:
    """What each process made is counted once; a small machine may be too slow, which is said."""
    assert {loss["reason"] for loss in run.report["lost"]} <= {HOLD_EXPIRED}
    if not run.report["lost"]:
        assert (made(run, "in_parent"), made(run, "in_child")) == (parents, children)
    assert made(run, "in_parent") == parents


def test_the_next_run_takes_them_over(targets: Path, tmp_path: Path) -> None:
    """Or makes its own where it did not get the turn in time, which depends on what else the machine does."""
    wait_for(lambda: "refleak_" not in EVENTS.read_text(), "the events of other tests to go")
    ended, has_own = 0.0, []
    for _ in range(3):
        command = ["--exec", targets / "paired_children", 60]
        with live_refleak(tmp_path / "report", *command) as refleak:
            assert refleak.line() == b"ready\n"
            refleak.tell(b"x")
            wait_for(lambda: made_half(refleak), "half of the children")
            mine, known = places(refleak), set(places(refleak, others=True))
            assert known or mine
            assert known or time.monotonic() - ended > KEPT_SECONDS
            has_own.append(bool(known.intersection(mine)))
            refleak.tell(b"x")
            check(refleak.end(), 60, 180)
            ended = time.monotonic()
    assert not all(has_own[1:])
    wait_for(lambda: not places(refleak), "the names to go")


def made_half(refleak: LiveRefleak) -> bool:
    """Return whether the target waits for its stdin, and has no child."""
    target = refleak.child()
    stat = Path(f"/proc/{target}/stat").read_text().rpartition(")")[2].split()
    return stat[0] == "S" and not Path(f"/proc/{target}/task/{target}/children").read_text()


@contextmanager
def many_of_others(count: int) -> Iterator[None]:
    """Have as many events in tracefs as a hundred runs leave there that wait for their turn to close theirs."""
    with listed([f"{group_of(os.getpid())}/at{number}" for number in range(count)]):
        yield


def group_of(run: int) -> str:
    """Return the group of a run's events that this process closes."""
    return f"refleak_{run}_{os.getpid()}_aan{Path('/proc/self/ns/pid').stat().st_ino:x}"


@contextmanager
def listed(names: Sequence[str]) -> Iterator[None]:
    """Have events of these names in tracefs."""
    try:
        for number, name in enumerate(names):
            tell(f"p:{name} /bin/ls:{0x4000 + number:#x}")
        yield
    finally:
        for name in names:
            with suppress(OSError):
                tell(f"-:{name}")


def test_children_have_their_probes_by_events_where_other_runs_have_thousands(targets: Path, tmp_path: Path) -> None:
    """By links, as it was, a shell script of 500 children took 212 s in place of 5."""
    wait_for(lambda: "refleak_" not in EVENTS.read_text(), "the events of other tests to go")
    command = ["--exec", targets / "paired_children", 60]
    with many_of_others(2_500), live_refleak(tmp_path / "report", *command) as refleak:
        assert refleak.line() == b"ready\n"
        refleak.tell(b"x")
        wait_for(lambda: made_half(refleak), "half of the children")
        assert len(places(refleak)) > 20, places(refleak)  # also by links a few keep children for the tracer
        refleak.tell(b"x")
        check(refleak.end(), 60, 180)


@contextmanager
def many_that_close(count: int) -> Iterator[None]:
    """Have an event in tracefs of each of so many runs that have ended, while a process is closing what they had."""
    runs = [subprocess.Popen(["true"]) for _ in range(count)]
    for run in runs:
        run.wait()
    with listed([f"{group_of(run.pid)}/at" for run in runs]):
        yield


@pytest.mark.needs("uprobe_multi")
def test_a_program_that_has_no_children_waits_for_no_other_run(targets: Path, tmp_path: Path) -> None:
    """It has links: as many events more would let the next run wait for longer."""
    found = []
    for number, others in enumerate((0, 9)):
        wait_for(lambda: "refleak_" not in EVENTS.read_text(), "the events of other tests to go")
        output, command = tmp_path / f"report{number}", ["--exec", targets / "attach"]
        with many_that_close(others), live_refleak(output, *command) as refleak:
            assert refleak.line() == b"ready\n"
            count = len(places(refleak))
            assert count < 10 if others else count > 20  # by links, too, a few keep children for the tracer
            refleak.tell(b"x")
            assert refleak.line() == b"done\n"
            run = refleak.end()
            assert run.report["complete"]
            found.append([(leak["count"], leak["bytes"], leak["own_frame"]) for leak in run.report["leaks"]])
    assert found[0] == found[1] != []


def test_two_runs_that_trace_one_process(targets: Path, tmp_path: Path) -> None:
    with live_refleak(tmp_path / "first", "--exec", targets / "paired_children", 100) as first:
        assert first.line() == b"ready\n"
        first.tell(b"x")
        wait_for(lambda: made_half(first), "half of the children")
        with live_refleak(tmp_path / "second", "--follow-forks", "-p", first.child()) as second:
            second.wait_until_attached()
            first.tell(b"x")
            check(first.end(), 100, 300)
            check(second.end(), 49, 147)
