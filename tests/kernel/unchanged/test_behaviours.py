"""Programs say, write and end with refleak as they do without it. The table: behaviours.py."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from conftest import REFLEAK
from patience import TIMEOUT_SECONDS

sys.path.insert(0, str(Path(__file__).parent))
from behaviours import BEHAVIOURS, Behaviour


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


def _outcome(command: list[str], folder: Path) -> Outcome:
    """Run the command in a folder of its own: the same one each time, as programs print where they are."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}
    folder.mkdir()
    variables |= {"LC_ALL": "C", "PWD": str(folder)}
    run = subprocess.run(
        command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, capture_output=True,
        timeout=TIMEOUT_SECONDS, start_new_session=True,
    )  # fmt: skip
    status = run.returncode if run.returncode >= 0 else 128 - run.returncode
    outcome = Outcome(status, run.stdout, run.stderr, _files(folder))
    shutil.rmtree(folder)
    return outcome


def _without_own_lines(stderr: bytes) -> bytes:
    """Return what the program said: refleak's own lines begin with its name."""
    lines = stderr.splitlines(keepends=True)
    return b"".join(line for line in lines if not line.startswith(b"refleak: "))


def _row(behaviour: Behaviour) -> ParameterSet:
    marks = (
        [pytest.mark.xfail(reason=behaviour.differs, raises=AssertionError, strict=True)] if behaviour.differs else []
    )
    return pytest.param(behaviour, id=behaviour.name.replace(" ", "_"), marks=marks)


@pytest.mark.parametrize("behaviour", [_row(behaviour) for behaviour in BEHAVIOURS])
def test_a_program_does_the_same(behaviour: Behaviour, targets: Path, tmp_path: Path) -> None:
    program, *arguments = behaviour.command
    command = [program if "/" in program else str(targets / program), *arguments]
    report = tmp_path / "report.json"
    alone = _outcome(command, tmp_path / "place")
    options = ["--format", "json", "-o", str(report)]
    traced = _outcome([str(REFLEAK), *options, "--exec", *command], tmp_path / "place")
    if alone.status != behaviour.status:
        pytest.fail(f"untraced, status {alone.status}: {alone.stderr!r}")
    said = _without_own_lines(traced.stderr)
    assert (traced.status, traced.stdout, said) == (alone.status, alone.stdout, alone.stderr)
    assert traced.files == alone.files
    assert json.loads(report.read_text())["events_seen"] > 0
