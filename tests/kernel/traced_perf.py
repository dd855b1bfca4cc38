"""perf 6.1 as examples/perf builds it, traced with a spec that refleak discovered in it."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "perf"
BUILD = EXAMPLE / "build"
Json = dict[str, Any]


def built(name: str) -> Path:
    """Return a perf that examples/perf/build.sh has made; skip the test where it has not."""
    if not (BUILD / name).exists():
        pytest.skip(f"{name} is not built: run examples/perf/build.sh, and again with --unmodified")
    return BUILD / name


class TracedPerf:
    """Runs commands of perf under refleak; reports are JSON."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = os.environ | {"PERF_CONFIG": "/dev/null", "PERF_BUILDID_DIR": str(folder / "build-ids")}

    @cached_property
    def spec(self) -> Path:
        """Discover the types of unmodified perf, and let the spec apply to its mutants too."""
        path = self._folder / "perf.toml"
        command = [str(ROOT / "refleak"), "discover", "--counted", str(built("perf-unmodified")), "-o", str(path)]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        lines = path.read_text().splitlines()
        path.write_text("\n".join(line for line in lines if not line.startswith("libraries")) + "\n")
        return path

    @cached_property
    def data(self) -> Path:
        """Record many short processes, for `perf report`: thousands of maps, hundreds of threads."""
        path = self._folder / "perf.data"
        script = "for i in $(seq 300); do /bin/true; done"
        command = [str(built("perf-unmodified")), "record", "-e", "cpu-clock", "-o", str(path), "bash", "-c", script]
        subprocess.run(command, check=True, capture_output=True, timeout=120, env=self._environment)
        return path

    def arguments(self, command: str) -> list[str]:
        if command in ("report", "script"):
            return [command, *(["--stdio"] if command == "report" else []), "-i", str(self.data)]
        if command == "record":
            return ["record", "-e", "cpu-clock", "-o", str(self._folder / "made.data"), "true"]
        return command.split()

    def trace(self, program: Path, command: str, *options: str) -> Json:
        """Run `perf COMMAND` to its end and return the report."""
        for _ in range(4):  # on a busy machine a hold can expire: once is no failure
            found = self._traced(program, command, *options)
            if not found["lost"]:
                break
        assert found["lost"] == [], found["lost"]
        return found

    def _traced(self, program: Path, command: str, *options: str) -> Json:
        report = self._folder / f"{program.name}-{command.split()[0]}.json"
        report.unlink(missing_ok=True)
        words = [str(ROOT / "refleak"), "--user", "root", "--refs-only", *options]
        done = subprocess.run(
            [*words, "--format", "json", "-o", str(report), "--exec", str(program), *self.arguments(command)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False, env=self._environment,
        )  # fmt: skip
        assert report.exists(), done.stderr
        found: Json = json.loads(report.read_text())
        return found
