"""A first look at a large library takes longer than a hold: who waits for it is held on, and nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from live_refleak import environment

_SLOW = """
import sys, time
from tracer.cli.main import main
from tracer.probing.prober import Prober

look = Prober._prepare

def look_slowly(self, binary):
    if binary.path == sys.argv[1]:
        time.sleep(float(sys.argv[2]))
    look(self, binary)

Prober._prepare = look_slowly
sys.exit(main(sys.argv[3:]))
"""


def traced(target: Path, report: Path, seconds: float, *options: str) -> dict[str, Any]:
    """Trace a shell that executes the target, at which refleak looks for so long."""
    words = [str(target), str(seconds), *options, "-o", str(report), "sh", "-c", f"{target}; :"]
    command = [sys.executable, "-c", _SLOW, *words]
    result = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=100, check=False)
    assert result.returncode == 0, result.stderr
    document: dict[str, Any] = json.loads(report.read_text())
    return document


def test_who_waits_for_it_is_held_on(targets: Path, tmp_path: Path) -> None:
    report = traced(targets / "clean", tmp_path / "report.json", 6.5)
    assert report["complete"], report["lost"]
    assert report["totals"]["allocations"]["made"] >= 10


def test_no_longer_than_the_user_permits(targets: Path, tmp_path: Path) -> None:
    report = traced(targets / "clean", tmp_path / "report.json", 4.5, "--hold", "2")
    assert any("before its probes were in place" in one["reason"] for one in report["lost"])
