"""Programs say, write and end with refleak as they do without it. The tables: behaviours.py, distribution.py.

REFLEAK_CONFORMANCE=1 runs the whole: more programs, and all of them attached to too (docs/unchanged.md).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from conftest import REFLEAK
from patience import TIMEOUT_SECONDS

sys.path.insert(0, str(Path(__file__).parents[1] / "processes"))
sys.path.insert(0, str(Path(__file__).parent))
from behaviours import FLOW, MEMORY, OWN, Behaviour
from distribution import MORE_PROGRAMS, PROGRAMS
from live_refleak import live_refleak

WHOLE = bool(os.environ.get("REFLEAK_CONFORMANCE"))
LAUNCHED = OWN + PROGRAMS + (MORE_PROGRAMS if WHOLE else ())
ATTACHED = OWN + PROGRAMS + MORE_PROGRAMS if WHOLE else (*FLOW[::3], *MEMORY[::3])
WAITING = ("/bin/sh", "-c", 'echo ready; read -r go; exec "$@"', "sh")
"""Becomes a program when it is told to: to be attached to before it begins."""


@dataclass(frozen=True)
class Outcome:
    """All that a program showed to others."""

    status: int
    stdout: bytes
    stderr: bytes
    files: dict[str, tuple[int, bytes]]


def _files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return mode and content of each file below the folder."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes()) for path in found}


def _variables(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}
    return kept | {"LC_ALL": "C", "PWD": str(folder)}


def _in_folder(folder: Path, run: Callable[[], tuple[int, bytes, bytes]]) -> Outcome:
    """Run something in a folder of its own: the same one each time, as programs print where they are."""
    folder.mkdir()
    status, stdout, stderr = run()
    outcome = Outcome(status if status >= 0 else 128 - status, stdout, stderr, _files(folder))
    shutil.rmtree(folder)
    return outcome


def _launched(command: Sequence[str], folder: Path) -> Outcome:
    def run() -> tuple[int, bytes, bytes]:
        done = subprocess.run(
            command, cwd=folder, env=_variables(folder), stdin=subprocess.DEVNULL, capture_output=True,
            timeout=TIMEOUT_SECONDS, start_new_session=True,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    return _in_folder(folder, run)


def _told_to_begin(command: Sequence[str], folder: Path, report: Path | None) -> Outcome:
    """Run a program that waits, and attach refleak, if there is to be a report, before it is told to begin."""

    def run() -> tuple[int, bytes, bytes]:
        with subprocess.Popen(
            command, cwd=folder, env=_variables(folder) | {"BEHAVES_WAITS": "1"}, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, bufsize=0,
        ) as target:  # fmt: skip
            try:
                assert target.stdout is not None
                assert target.stdout.readline() == b"ready\n"
                if report is None:
                    stdout, stderr = target.communicate(b"x\n", TIMEOUT_SECONDS)
                else:
                    with live_refleak(report, "-p", target.pid) as refleak:
                        refleak.wait_until_attached()
                        stdout, stderr = target.communicate(b"x\n", TIMEOUT_SECONDS)
                        assert refleak.end().status == 0
                return target.returncode, stdout, stderr
            finally:
                target.kill()

    return _in_folder(folder, run)


def _without_own_lines(stderr: bytes) -> bytes:
    """Return what the program said: refleak's own lines begin with its name."""
    lines = stderr.splitlines(keepends=True)
    return b"".join(line for line in lines if not line.startswith(b"refleak: "))


def _rows(behaviours: Sequence[Behaviour], *, launched: bool) -> list[ParameterSet]:
    def row(behaviour: Behaviour) -> ParameterSet:
        differs = behaviour.differs or (behaviour.differs_launched if launched else "")
        marks = [pytest.mark.xfail(reason=differs, raises=AssertionError, strict=True)] if differs else []
        return pytest.param(behaviour, id=behaviour.name.replace(" ", "_"), marks=marks)

    return [row(behaviour) for behaviour in behaviours]


def _command(behaviour: Behaviour, targets: Path) -> list[str]:
    program, *arguments = behaviour.command
    return [program if "/" in program else str(targets / program), *arguments]


@pytest.mark.parametrize("behaviour", _rows(LAUNCHED, launched=True))
def test_a_launched_program_does_the_same(behaviour: Behaviour, targets: Path, tmp_path: Path) -> None:
    command = _command(behaviour, targets)
    report = tmp_path / "report.json"
    alone = _launched(command, tmp_path / "place")
    options = ["--format", "json", "-o", str(report)]
    traced = _launched([str(REFLEAK), *options, "--exec", *command], tmp_path / "place")
    if alone.status != behaviour.status:
        pytest.fail(f"untraced, status {alone.status}: {alone.stderr!r}")
    said = _without_own_lines(traced.stderr)
    assert (traced.status, traced.stdout, said) == (alone.status, alone.stdout, alone.stderr)
    assert traced.files == alone.files
    assert json.loads(report.read_text())["events_seen"] > 0


@pytest.mark.parametrize("behaviour", _rows(ATTACHED, launched=False))
def test_a_program_that_is_attached_to_does_the_same(behaviour: Behaviour, targets: Path, tmp_path: Path) -> None:
    command = _command(behaviour, targets)
    if behaviour not in OWN:
        command = [*WAITING, *command]
    report = tmp_path / "report.json"
    alone = _told_to_begin(command, tmp_path / "place", None)
    traced = _told_to_begin(command, tmp_path / "place", report)
    if alone.status != behaviour.status:
        pytest.fail(f"untraced, status {alone.status}: {alone.stderr!r}")
    assert traced == alone
    assert json.loads(report.read_text())["events_seen"] > 0
