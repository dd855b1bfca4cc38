"""refleak where packages that it imports are not installed: a line or two, and no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
_BARE = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tracer.cli.main import main
sys.exit(main())
"""


def bare(*words: str) -> subprocess.CompletedProcess[str]:
    """Run refleak in a Python that has its own library only."""
    command = [sys.executable, "-S", "-I", "-c", _BARE, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("words", [("true",), ("-h",), ("report", "x.refleak"), ("discover", "x")])
def test_a_missing_package_is_named(words: tuple[str, ...]) -> None:
    done = bare(*words)
    assert done.returncode == 69
    first, hint = done.stderr.splitlines()
    assert first.startswith("refleak: the Python package ") and first.endswith(" is missing")
    assert "make venv" in hint


def test_the_doctor_lists_all_that_are_missing() -> None:
    """It could not be started."""
    done = bare("doctor")
    assert (done.returncode, done.stderr) == (69, "")
    said = " ".join(done.stdout.split())
    assert "packages missing of Python: numpy, psutil, tabulate, capstone, rich" in said
    assert "refleak cannot trace here: packages: run `make venv` in a checkout" in said
    assert bare("--version").returncode == 0
