"""The launcher where refleak's own package is missing or broken: a line and what to do, and no traceback."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PYTHON = "/usr/bin/python3"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A copy of refleak as an environment has it: the launcher beside an interpreter that finds the package."""
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", tmp_path], check=True)
    shutil.copy(ROOT / "refleak", tmp_path / "bin")
    return tmp_path


def package(installed: Path) -> Path:
    (site,) = installed.glob("lib/python3*/site-packages")
    return Path(shutil.copytree(ROOT / "tracer", site / "tracer", ignore=shutil.ignore_patterns("__pycache__")))


def check(installed: Path, reason: str, *words: str) -> None:
    command = [installed / "bin/refleak", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (69, "")
    first, hint = done.stderr.splitlines()
    assert reason in first
    assert "install refleak again" in hint


@pytest.mark.parametrize("words", [("--version",), ("doctor",), ("true", "-v")])
def test_a_package_that_is_gone(installed: Path, words: tuple[str, ...]) -> None:
    check(installed, "missing or broken: ModuleNotFoundError: No module named 'tracer'", *words)


@pytest.mark.parametrize("text", ["def main(:\n", "", "\0", "raise RuntimeError('two\\nlines')\n"])
def test_a_package_that_is_broken(installed: Path, text: str) -> None:
    (package(installed) / "cli/main.py").write_text(text)
    check(installed, "missing or broken: ", "--version")


@pytest.mark.parametrize("part", ["files", "cli/parsing.py"])
def test_a_package_that_is_not_whole(installed: Path, part: str) -> None:
    path = package(installed) / part
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    check(installed, f"tracer.{part.removesuffix('.py').replace('/', '.')}", "true")


def test_no_sources_of_the_kernel_side(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tracer.errors import PackageMissing
    from tracer.kernel import sources

    monkeypatch.setattr(sources, "__file__", str(tmp_path / "tracer/kernel/sources.py"))
    with pytest.raises(PackageMissing, match="BPF sources") as raised:
        sources.bpf_directory()
    assert raised.value.hint.startswith("install refleak again")


def test_no_python(tmp_path: Path) -> None:
    launcher = (ROOT / "refleak").read_text().replace("/usr/bin/python3 ", f"{tmp_path}/python3 ", 1)
    (tmp_path / "refleak").write_text(launcher)
    done = subprocess.run(["sh", tmp_path / "refleak"], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr == "refleak: there is no /usr/bin/python3: install python3, 3.11 or newer\n"


def test_an_old_python(tmp_path: Path) -> None:
    """One that says it is older than what refleak is written for."""
    old = tmp_path / "python3"
    old.write_text(f"""#!/bin/sh
for word; do [ "$before" = -c ] && code=$word; before=$word; done
while [ "$1" != -c ]; do shift; done
shift 2
exec {PYTHON} -I -c "import sys; sys.version_info = (3, 9, 2, 'final', 0)
$code" "$@"
""")
    old.chmod(0o755)
    shutil.copy(ROOT / "refleak", tmp_path)
    done = subprocess.run([tmp_path / "refleak", "true"], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr.startswith("refleak: it needs Python 3.11 or newer; ")
    assert done.stderr.endswith(" is 3.9\n")
