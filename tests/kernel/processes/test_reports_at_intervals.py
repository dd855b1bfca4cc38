"""`--interval` while the target runs: exact numbers at each step of targets/periods.c, and nobody waits for it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from live_refleak import PATIENCE_SECONDS, REFLEAK, environment, wait_for

Outstanding = dict[str, int]


def outstanding(document: dict[str, Any]) -> tuple[int, int]:
    """Return the objects and the blocks that are outstanding."""
    sums = {"reference": 0, "allocation": 0}
    for entry in document["outstanding"]:
        sums[entry["kind"]] += entry["count"]
    return sums["reference"], sums["allocation"]


@pytest.fixture
def process(targets: Path, tmp_path: Path) -> Any:
    command = [REFLEAK, "--reachability", "off", "--interval", "0.1", "--format", "json", "--exec", targets / "periods"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, env=environment(),
    ) as refleak:  # fmt: skip
        yield refleak
        refleak.kill()


def read_until(process: subprocess.Popen[bytes], wanted: tuple[int, int]) -> dict[str, Any]:
    """Read reports until one says so."""
    assert process.stderr is not None
    found: list[dict[str, Any]] = []

    def arrived() -> bool:
        assert process.stderr is not None
        found.append(json.loads(process.stderr.readline()))
        return outstanding(found[-1]) == wanted

    wait_for(arrived, f"{wanted} outstanding")
    return found[-1]


def test_each_report_is_a_line_with_the_difference(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None and process.stdout is not None
    for step, wanted in enumerate([(2, 5), (1, 12), (1, 3)]):
        assert process.stdout.readline() == b"ready\n"
        document = read_until(process, wanted)
        assert (document["format"], document["complete"]) == ("refleak-interval", True)
        again = read_until(process, wanted)
        assert again["number"] > document["number"] and again["time_ns"] > document["time_ns"]
        assert [again["difference"][word] for word in ("new", "grown", "shrunk", "gone")] == [[], [], [], []], step
        process.stdin.write(b"x")
    _, stderr = process.communicate(timeout=PATIENCE_SECONDS)
    last = json.loads(stderr.splitlines()[-1])
    assert (process.returncode, last["format"], last["complete"]) == (0, "refleak-report", True)
    assert last["totals"]["allocations"]["outstanding"] == 3


def test_numbered_files_hold_whole_reports(targets: Path, tmp_path: Path) -> None:
    command = [
        REFLEAK, "--interval", "0.5", "-o", tmp_path / "leaks.json", "--exec", targets / "trends",
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, env=environment())
    assert result.returncode == 0, result.stderr
    files = sorted(tmp_path.iterdir())
    assert files[-1].name == "leaks.json" and len(files) >= 2
    assert [file.name for file in files[:-1]] == [f"leaks.{n:04}.json" for n in range(1, len(files))]
    counts = []
    for file in files:
        report = json.loads(file.read_text())
        assert report["complete"], report["lost"]
        counts.append(sum(leak["count"] for leak in report["leaks"] if leak["kind"] == "reference"))
    assert counts == sorted(counts) and counts[-1] == 60 and counts[0] < 60
    assert result.stderr.count("refleak: 1: outstanding after") == 1


def test_children_do_not_wait_for_reports(targets: Path, tmp_path: Path) -> None:
    """Each child is held until it has probes: a trace that stood still meanwhile would let holds expire."""
    output = tmp_path / "out.json"
    what = ["--exec", targets / "many_children", "30", "1"]
    command = [REFLEAK, "--reachability", "off", "-q", "--interval", "0.1", "--format", "json", "-o", output, *what]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, env=environment())
    assert result.returncode == 0, result.stderr
    report = json.loads(output.read_text())
    assert report["lost"] == []
    assert sum(leak["count"] for leak in report["leaks"] if leak["state"] == "leaked") == 3 * 30
