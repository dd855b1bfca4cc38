"""examples/ci: passes with its baseline, fails when a leak is added, and says in SARIF where."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from conftest import CHECKOUT, REFLEAK

SCRIPT = CHECKOUT / "examples/ci/leak-check.sh"
DEMO = CHECKOUT / "examples/demo/leaky.c"
TIMEOUT_SECONDS = 120


def build(folder: Path, source: str) -> None:
    (folder / "leaky.c").write_text(source)
    command = ["gcc", "-g", "-O2", f"-I{DEMO.parent}", "-o", folder / "leaky", folder / "leaky.c"]
    subprocess.run(command, check=True, timeout=TIMEOUT_SECONDS)


def check(folder: Path, *options: str, command: str = "./leaky") -> subprocess.CompletedProcess[str]:
    words = [SCRIPT, *options, "baseline.json", "out", command]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}
    variables["REFLEAK"] = str(REFLEAK)
    return subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, env=variables
    )  # fmt: skip


def results(folder: Path) -> list[tuple[str, int]]:
    """Return (file, line) of each result of the SARIF file that is not suppressed."""
    (run,) = json.loads((folder / "out/leaks.sarif").read_text())["runs"]
    places = [result["locations"][0]["physicalLocation"] for result in run["results"] if not result.get("suppressions")]
    return [(place["artifactLocation"]["uri"], place["region"]["startLine"]) for place in places]


def test_passes_with_a_baseline_and_fails_when_a_leak_is_added(tmp_path: Path) -> None:
    source = DEMO.read_text().replace("../refleak.h", str(CHECKOUT / "examples/refleak.h"))
    build(tmp_path, source)
    before = check(tmp_path)
    assert before.returncode == 1, before.stderr  # no baseline yet: all that it leaks is new
    assert len(results(tmp_path)) == 2  # what has one cause is one result, with its memory and what is lost with that
    assert check(tmp_path, "--update").returncode == 0
    passed = check(tmp_path)
    assert passed.returncode == 0, passed.stderr
    assert results(tmp_path) == []

    lines = ["/* a line more */", *source.replace("\tfree(answer);\n", "").splitlines()]
    build(tmp_path, "\n".join(lines) + "\n")
    failed = check(tmp_path)
    assert failed.returncode == 1, failed.stderr
    line = next(number for number, line in enumerate(lines, 1) if "answer = malloc(64)" in line)
    assert results(tmp_path) == [("leaky.c", line)]
    assert "100 blocks of 64" in failed.stdout and "new since the baseline" in failed.stdout
    for name in ("leaks.xml", "leaks.md", "leaks.html", "run.refleak"):
        assert (tmp_path / "out" / name).stat().st_size > 0


def test_a_command_that_fails_is_no_leak(tmp_path: Path) -> None:
    failed = check(tmp_path, command="/bin/false")
    assert failed.returncode == 1
    assert "leak-check: '/bin/false' ended with status 1" in failed.stderr
    assert not (tmp_path / "out/leaks.sarif").exists()


def test_usage(tmp_path: Path) -> None:
    result = subprocess.run([SCRIPT, "one"], capture_output=True, text=True, cwd=tmp_path)
    assert (result.returncode, "BASELINE OUTPUT-DIRECTORY COMMAND" in result.stderr) == (2, True)


def test_the_pipelines_run_the_script() -> None:
    for name in ("gitlab-ci.yml", "github-workflow.yml"):
        assert "examples/ci/leak-check.sh examples/ci/baseline.json leaks " in (SCRIPT.parent / name).read_text()
