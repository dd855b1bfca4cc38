"""What is lost while the target runs on: at checkpoints, beside threads that are held in the kernel, and in the live
view."""

from __future__ import annotations

import json
import select
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from live_refleak import PATIENCE_SECONDS, LiveRefleak, live_refleak, wait_for

HERE = Path(__file__).parents[1] / "reachability"
HELD, LOST = ("reachable", "make_held"), ("lost", "make_lost")
CHECKPOINTS = 3


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("live_scans")
    for name in ("churns", "lives_on"):
        command = ["gcc", "-O1", "-g", "-fno-builtin", "-pthread", "-w", "-o", folder / name, HERE / f"{name}.c"]
        subprocess.run(command, check=True, timeout=PATIENCE_SECONDS)
    return folder


def answers(process: subprocess.Popen[bytes], expected: bytes) -> None:
    """Have it read a byte and answer: it does not stand still."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"\n")
    assert select.select([process.stdout], [], [], PATIENCE_SECONDS)[0], "it does not answer"
    assert process.stdout.readline() == expected


def checkpoint(refleak: LiveRefleak, output: Path, number: int) -> dict[str, Any]:
    """Ask for one, and return the report that it makes."""
    file = output.with_name(f"report.{number:04}.json")
    refleak.signal(signal.SIGUSR1)
    wait_for(file.exists, f"report {number}")
    report: dict[str, Any] = json.loads(file.read_text())
    return report


def classes(report: dict[str, Any]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for leak in report["leaks"]:
        if leak["kind"] == "allocation" and leak["stack"]:
            makers = {frame["function"] for frame in leak["stack"]} & {"make_held", "make_lost"}
            found.update({(leak["reachability"], maker): leak["count"] for maker in makers})
    return found


@pytest.mark.parametrize("kinds", ["", "lfe"])
def test_a_checkpoint_looks_beside_threads_that_are_held(kinds: str, programs: Path, tmp_path: Path) -> None:
    """Nearly all the time one of them is held in the kernel for refleak, and stops only once it is answered."""
    output, looked = tmp_path / "report.json", 0
    with subprocess.Popen(
        [programs / "churns", kinds], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"begun\n"
        try:
            words = ("--reachability", "auto", "--scan-live", "--no-follow-forks", "-p", process.pid)
            with live_refleak(output, *words) as refleak:
                refleak.wait_until_attached()
                answers(process, b"built\n")
                for number in range(1, CHECKPOINTS + 1):
                    report = checkpoint(refleak, output, number)
                    (scan,) = report["scans"]
                    if scan["looked_into"]:
                        looked += 1
                        assert scan["held_ns"] > 0
                        assert {key: classes(report)[key] for key in (HELD, LOST)} == {HELD: 13, LOST: 7}, number
                    answers(process, b"alive\n")
                refleak.signal(signal.SIGINT)
                assert refleak.end().status == 0
            answers(process, b"alive\n")
        finally:
            process.kill()
    assert looked >= (CHECKPOINTS if not kinds else 1), scan
