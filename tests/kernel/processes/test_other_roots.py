"""Programs whose root directory is another: their loader and libraries are not those at the same paths outside."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Refleak

LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")


@pytest.fixture
def root(targets: Path, tmp_path: Path) -> Path:
    """Make a root directory with copies of a target and of what it loads; its loader is behind an absolute link."""
    folder = tmp_path / "root"
    program = targets / "thread_fork"
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    for library in LIBRARY.findall(listed):
        (folder / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, folder / library[1:])
    loader = next(folder.glob("lib64/ld-*"))
    (folder / "real").mkdir()
    loader.rename(folder / "real" / loader.name)
    loader.symlink_to(f"/real/{loader.name}")
    shutil.copy(program, folder / "program")
    (folder / "bin").mkdir()
    (folder / "bin" / "start").symlink_to("/program")
    return folder


@pytest.mark.parametrize("program", ["/program", "/bin/start", "./program"])
def test_a_program_under_another_root(refleak: Refleak, root: Path, program: str) -> None:
    run = refleak(target=(shutil.which("chroot"), root, program))
    run.check_whole()
    leaks = [(leak["state"], leak["count"], leak["bytes"]) for leak in run.below("in_thread", "allocation")]
    childs = [leak["count"] for leak in run.below("in_child_of_thread", "allocation")]
    assert ("leaked", 14, 938) in leaks and childs == [3] * 7
