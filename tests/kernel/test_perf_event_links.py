"""Probes by perf events, as on kernels without uprobe_multi (before Linux 6.6): the same is seen, and all is closed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bpf_residue import Residue
from conftest import CHECKOUT
from patience import TIMEOUT_SECONDS
from traced_report import HOLD_EXPIRED, Run, run_in_turns

WITHOUT_MULTI = """
import sys
from tracer.capture import kernel_side
from tracer.cli.main import main
assert kernel_side.has_uprobe_multi
kernel_side.has_uprobe_multi = lambda: False
sys.exit(main(sys.argv[1:]))
"""


def traced(output: Path, *command: object) -> Run:
    words = ["--format", "json", "-o", str(output), "--exec", *map(str, command)]
    residue = Residue()
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT_MULTI, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=TIMEOUT_SECONDS, cwd=CHECKOUT,
    )  # fmt: skip
    assert residue.left() == []
    return Run(json.loads(output.read_text()), result.returncode, result.stdout, result.stderr, 0.0, 0)


def test_references(targets: Path, tmp_path: Path) -> None:
    run = traced(tmp_path / "report", targets / "refs_leak")
    run.check_whole()
    assert run.stderr == ""
    assert run.types == {"a": (13, 0, 6, 6, 7), "b": (11, 11, 12, 6, 5), "c": (5, 15, 17, 2, 3)}


@pytest.mark.needs("holds")
def test_children(targets: Path, tmp_path: Path) -> None:
    run = traced(tmp_path / "report", targets / "fork_no_exec")
    run.check_whole()
    assert run.stderr == ""
    assert run.blocks == (20, 2, 18, 694)


@pytest.mark.needs("holds")
def test_a_child_in_its_parents_memory_that_has_probes_of_its_own(targets: Path, tmp_path: Path) -> None:
    # The kernel tells whose events they are by the memory: the parent's come in the child too, which would count twice.
    run = run_in_turns(
        lambda turn: traced(tmp_path / f"report-{turn}", targets / "vfork_exec", "search"), {HOLD_EXPIRED}
    )
    run.check_whole()
    assert run.stderr == ""
    assert run.report["errors"] == []
    assert run.blocks[:3] == (23, 7, 16)
