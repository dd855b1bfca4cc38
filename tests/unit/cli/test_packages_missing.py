"""refleak where packages that it imports are not installed: a line or two, and no traceback."""

from __future__ import annotations

import site
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


def bare(*words: str, packages: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run refleak in a Python that has its own library only, and these packages."""
    more = f"import sys; sys.path.append({str(packages)!r})\n" if packages is not None else ""
    command = [sys.executable, "-S", "-I", "-c", more + _BARE, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("words", [("true",), ("-h",), ("report", "x.refleak"), ("discover", "x")])
def test_a_missing_package_is_named(words: tuple[str, ...]) -> None:
    done = bare(*words)
    assert done.returncode == 69
    first, hint = done.stderr.splitlines()
    assert first.startswith("refleak: the Python package ") and first.endswith(" is missing")
    assert "make venv" in hint


@pytest.mark.parametrize("package", ["capstone", "rich"])
def test_one_that_a_report_wants_is_named_before_anything_is_started(tmp_path: Path, package: str) -> None:
    packages, started = tmp_path / "packages", tmp_path / "started"
    packages.mkdir()
    for folder in map(Path, (*site.getsitepackages(), "/usr/lib/python3/dist-packages")):
        for entry in folder.iterdir() if folder.is_dir() else ():
            if entry.name != package and not (packages / entry.name).is_symlink():
                (packages / entry.name).symlink_to(entry)
    done = bare("touch", str(started), packages=packages)
    assert done.returncode == 69 and not started.exists()
    assert done.stderr.splitlines()[0] == f"refleak: the Python package {package} is missing"


def test_the_doctor_lists_all_that_are_missing() -> None:
    """It could not be started."""
    done = bare("doctor")
    assert (done.returncode, done.stderr) == (69, "")
    said = " ".join(done.stdout.split())
    assert "packages missing of Python: numpy, psutil, tabulate, capstone, rich" in said
    assert "refleak cannot trace here: packages: run `make venv` in a checkout" in said
    assert bare("--version").returncode == 0
