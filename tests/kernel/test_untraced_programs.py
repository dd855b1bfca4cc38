"""What was not seen is not clean: programs without a probe are listed, and the verdict says so."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import REFLEAK, LiveTarget, Refleak

LEAKS_TEN = """\
#include <stdlib.h>
void *volatile kept;
int main(void) { for (int i = 0; i < 10; i++) kept = malloc(101); return 0; }
"""
GO = "package main\n\nfunc main() { println(len(make([]byte, 101))) }\n"


def built(folder: Path, *flags: str) -> Path:
    program = folder / ("program" + "".join(flags))
    subprocess.run(["gcc", *flags, "-x", "c", "-o", program, "-"], input=LEAKS_TEN, text=True, check=True, timeout=60)
    return program


def said(*words: object) -> list[str]:
    """Return the lines of a text report."""
    run = subprocess.run([REFLEAK, *map(str, words)], capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in run.stderr
    return run.stderr.splitlines()


def test_a_static_program_without_symbols(refleak: Refleak, tmp_path: Path) -> None:
    static = built(tmp_path, "-static", "-s")
    run = refleak("--fail-on", "incomplete", target=("/usr/bin/nice", static))
    assert run.status == 1
    (untraced,) = run.report["probes"]["untraced"]
    assert (untraced["program"], untraced["reason"]) == (str(static), "it is static and has no symbols")
    assert untraced["pid"] == run.report["processes"][-1]["pid"]
    lines = said("--exec", "/usr/bin/nice", static)
    assert lines[0] == lines[-1] == "refleak: no leak found, but 1 of 2 programs was not traced"
    assert any(line.startswith("NOT SEEN") for line in lines)


def test_a_static_program_with_symbols_is_traced(refleak: Refleak, tmp_path: Path) -> None:
    run = refleak("--fail-on", "incomplete", target=("/usr/bin/nice", built(tmp_path, "-static")))
    assert (run.report["probes"]["untraced"], run.status) == ([], 0)
    assert sum(leak["count"] for leak in run.report["leaks"]) == 10


def test_a_go_program(tmp_path: Path) -> None:
    (tmp_path / "main.go").write_text(GO)
    variables = os.environ | {"GOCACHE": str(tmp_path / "cache"), "GO111MODULE": "off", "CGO_ENABLED": "0"}
    subprocess.run(["go", "build", "-o", "main", "main.go"], cwd=tmp_path, env=variables, check=True, timeout=300)
    program = tmp_path / "main"
    lines = said("--exec", "/usr/bin/nice", program)
    assert f"NOT SEEN {program}: a Go program, which allocates without malloc" in " ".join(map(str.strip, lines))
    run = subprocess.run([REFLEAK, "--exec", program], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 67
    refused = f"refleak: nothing to probe in {program}: a Go program, which allocates without malloc\n"
    assert run.stderr.startswith(refused)
    assert "runtime/pprof" in run.stderr


def test_nothing_to_count(refleak: Refleak, tmp_path: Path) -> None:
    program = built(tmp_path)
    lines = said("--refs-only", "--exec", program)
    assert lines[0] == "refleak: no leak found, but nothing was probed"
    (untraced,) = refleak("--refs-only", target=(program,)).report["probes"]["untraced"]
    assert untraced["reason"] == "neither it nor its libraries have a function that is looked for"


@pytest.mark.parametrize("target", [("clean", "quiet"), ("/bin/sh", "-c", "/bin/true; /bin/true")])
def test_programs_that_are_all_traced(refleak: Refleak, target: tuple[str, ...]) -> None:
    assert refleak(target=target).report["probes"]["untraced"] == []


def test_programs_beside_counted_ones_need_not_count(refleak: Refleak, targets: Path) -> None:
    command = f"/bin/true; {targets}/clean quiet"
    assert refleak("--refs-only", target=("/bin/sh", "-c", command)).report["probes"]["untraced"] == []


def test_children_that_are_older_than_the_trace(refleak: Refleak, live_target: LiveTarget) -> None:
    with live_target("older_children") as target:
        run = refleak("--follow-forks", "--duration", "0.5", pid=target.pid)
        alone = refleak("--duration", "0.5", pid=target.pid)
    reasons = [untraced["reason"] for untraced in run.report["probes"]["untraced"]]
    assert reasons == ["it ran before refleak attached to its parent: -p PID --tree traces it too"] * 3
    assert alone.report["probes"]["untraced"] == []
    said_of_them = "3 processes started by what was attached to were not traced: --tree traces them too"
    assert said_of_them in alone.report["notes"] and said_of_them not in run.report["notes"]
