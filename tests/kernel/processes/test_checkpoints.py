"""SIGUSR1 takes a checkpoint; what came and went between them. Numbers: targets/periods.c."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

from live_refleak import REFLEAK, LiveRefleak, live_refleak

Rows = dict[tuple[str, str | None], tuple[int, int | None, int, int | None]]


def checkpoint(live: LiveRefleak, number: int) -> None:
    assert live.process.stderr is not None
    live.signal(signal.SIGUSR1)
    assert live.process.stderr.readline().startswith(b"refleak: checkpoint %d at " % number)


def rows(period: dict[str, Any]) -> Rows:
    return {
        (row["kind"], row["stack"][1]["function"]): (
            row["made"], row["freed"], row["outstanding"], row["outstanding_bytes"]
        )
        for row in period["entries"]
    }  # fmt: skip


EXPECTED: list[Rows] = [
    {("allocation", "make_first"): (5, 0, 2, 82), ("reference", "make_first"): (2, 0, 1, None)},
    {("allocation", "make_second"): (11, 4, 0, 0), ("reference", "make_first"): (0, 1, 0, None)},
    {
        ("allocation", "make_first"): (0, 3, 0, 0), ("allocation", "make_second"): (0, 7, 0, 0),
        ("allocation", "drop"): (1, 0, 1, 61),
    },
]  # fmt: skip


def test_what_came_and_went_between_checkpoints(tmp_path: Path, targets: Path) -> None:
    with live_refleak(tmp_path / "out.json", "--exec", targets / "periods") as live:
        for number in (1, 2):
            assert live.line() == b"ready\n"
            checkpoint(live, number)
            live.tell(b"x")
        assert live.line() == b"ready\n"
        live.tell(b"x")
        run = live.end()
    run.check_whole()  # the target lived on: SIGUSR1 would have killed it
    found = run.report["periods"]
    assert [rows(period) for period in found] == EXPECTED
    times = [(period["from_ns"], period["until_ns"]) for period in found]
    assert times[0][0] == 0 and times[-1][1] == run.report["duration_ns"]
    assert [end for _, end in times[:-1]] == [start for start, _ in times[1:]] == sorted(end for _, end in times[:-1])


def test_a_recording_carries_them(tmp_path: Path, targets: Path) -> None:
    recording = tmp_path / "run.refleak"
    with live_refleak(recording, "--format", "text", "--exec", targets / "periods") as live:
        assert live.line() == b"ready\n"
        checkpoint(live, 1)
        live.process.communicate(b"xxx", timeout=60)
    text = subprocess.run([REFLEAK, "report", recording, "--format", "json"], check=True, capture_output=True).stdout
    first, second = json.loads(text)["periods"]
    assert rows(first) == EXPECTED[0]
    assert rows(second)["allocation", "make_second"] == (11, 11, 0, 0)
