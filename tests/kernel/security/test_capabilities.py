"""Which capabilities refleak needs, found by dropping each: the table of docs/security.md."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from second_user import REFLEAK

NEEDED = ("bpf", "perfmon", "sys_ptrace", "sys_admin")


def without(dropped: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Trace a command by a root that lacks capabilities: names as setpriv takes them, with a sign each."""
    command = ["setpriv", f"--bounding-set={dropped}", "--inh-caps=-all", str(REFLEAK)]
    return subprocess.run(
        [*command, "-o", str(folder / "report.json"), "--exec", "/usr/bin/touch", str(folder / "ran")],
        capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, cwd=folder,
    )  # fmt: skip


@pytest.mark.parametrize("name", NEEDED)
def test_each_that_is_needed_is_named(tmp_path: Path, name: str) -> None:
    run = without(f"-{name}", tmp_path)
    first, *rest = run.stderr.splitlines()
    assert run.returncode == 77
    assert first == f"refleak: tracing is not permitted: CAP_{name.upper()} missing"
    assert len(rest) == 1
    assert not (tmp_path / "ran").exists()


def test_no_other_is_needed(tmp_path: Path) -> None:
    run = without(",".join(["-all", *(f"+{name}" for name in NEEDED)]), tmp_path)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "ran").exists()
    assert json.loads((tmp_path / "report.json").read_text())["complete"]
