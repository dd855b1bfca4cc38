"""`--hold`: how long a child waits for a tracer that is slow to give it its probes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import CHECKOUT, REFLEAK
from patience import TIMEOUT_SECONDS
from traced_report import HOLD_EXPIRED, Run

pytestmark = pytest.mark.needs("holds")

SLOW = """
import sys, time
from tracer.cli.main import main
from tracer.probing.prober import Prober
forked, seconds = Prober.forked, float(sys.argv[1])
def late(*arguments, **named):
    time.sleep(seconds)
    return forked(*arguments, **named)
Prober.forked = late
sys.exit(main(sys.argv[2:]))
"""


def traced(output: Path, seconds: float, *words: object) -> Run:
    given = ["--format", "json", "-o", str(output), *map(str, words)]
    result = subprocess.run(
        [sys.executable, "-c", SLOW, str(seconds), *given], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=TIMEOUT_SECONDS, cwd=CHECKOUT,
    )  # fmt: skip
    return Run(json.loads(output.read_text()), result.returncode, result.stdout, result.stderr, 0.0, 0)


def test_a_child_waits_as_long_as_it_may(targets: Path, tmp_path: Path) -> None:
    """Six seconds: longer than by default."""
    run = traced(tmp_path / "report", 6, "--hold", 20, "--exec", targets / "fork_no_exec")
    run.check_whole()
    assert run.blocks == (20, 2, 18, 694)


def test_and_no_longer(targets: Path, tmp_path: Path) -> None:
    run = traced(tmp_path / "report", 3, "--hold", 1, "--exec", targets / "fork_no_exec")
    [loss] = run.report["lost"]
    assert loss["reason"] == HOLD_EXPIRED and "--hold" in loss["remedy"]


@pytest.mark.parametrize("seconds", ["0.5", "21", "x"])
def test_a_limit_that_cannot_be(seconds: str) -> None:
    words = [str(REFLEAK), "--hold", seconds, "--exec", "true"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert done.returncode != 0 and "seconds" in done.stderr
