"""A program that is exec'd by a path which stands in a page that its process has never touched."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import Refleak
from test_children import of

TARGETS = Path(__file__).parents[1] / "targets"


@pytest.mark.parametrize("padding", [0, 60])
def test_a_static_program_is_traced_from_its_start(
    refleak: Refleak, targets: Path, tmp_path: Path, padding: int
) -> None:
    program = str(targets) + "/" * padding + "/short-static"
    command = ["gcc", "-O1", f"-DPROGRAM=\"{program}\"", f"-I{TARGETS}", "-o", str(tmp_path / "runner")]
    subprocess.run([*command, f"{TARGETS}/literal/runner.c"], check=True, timeout=60)
    run = refleak(target=(tmp_path / "runner",))
    run.check_whole()
    child = run.report["processes"][-1]
    assert [(leak[0], leak[2]) for leak in of(run, "leak_and_leave")] == [(child["pid"], 31)]
