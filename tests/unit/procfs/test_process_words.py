"""Processes by number, by name and by cgroup."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracer.procfs.process_words import is_cgroup, names_of_programs, processes_of


@pytest.fixture
def named(tmp_path: Path) -> Iterator[tuple[str, list[int]]]:
    """Give the name of a program of which two processes run, and their numbers."""
    program = tmp_path / f"waits-{os.getpid()}"
    shutil.copy("/bin/cat", program)
    started = [subprocess.Popen([program], stdin=subprocess.PIPE) for _ in range(2)]
    try:
        yield program.name, sorted(process.pid for process in started)
    finally:
        for process in started:
            process.communicate()


def test_a_number_is_that_process() -> None:
    assert processes_of("4194305") == (4194305,)


def test_a_name_is_all_that_run_the_program(named: tuple[str, list[int]]) -> None:
    name, pids = named
    assert list(processes_of(name)) == pids
    assert list(processes_of(name[:15])) == pids  # what the kernel calls them
    assert processes_of(name[:5]) == ()
    assert name in names_of_programs()


def test_a_name_never_means_this_process_or_its_parents(named: tuple[str, list[int]]) -> None:
    own = Path("/proc/self/exe").resolve().name
    assert not {os.getpid(), os.getppid()} & set(processes_of(own))


def test_a_cgroup_has_those_below_it(named: tuple[str, list[int]]) -> None:
    _, pids = named
    path = Path(f"/proc/{pids[0]}/cgroup").read_text().splitlines()[0].split(":", 2)[2]
    assert set(pids) <= set(processes_of(f"cgroup:{path}"))
    assert set(pids) <= set(processes_of("cgroup:/"))
    assert processes_of("cgroup:/there/is/none") == ()


def test_a_name_may_have_its_folder(named: tuple[str, list[int]], tmp_path: Path) -> None:
    name, pids = named
    (tmp_path / "link").symlink_to(name)
    assert list(processes_of(str(tmp_path / name))) == list(processes_of(str(tmp_path / "link"))) == pids
    assert processes_of(f"/elsewhere/{name}") == ()


@pytest.mark.parametrize("prefix", ["", "cgroup:"])
def test_the_directory_of_a_cgroup_stands_for_it(named: tuple[str, list[int]], tmp_path: Path, prefix: str) -> None:
    """Of the file system of cgroups only this file is read; one with threads of others cannot be read."""
    _, pids = named
    for folder, members in (("a", [pids[0], os.getpid(), 4194305]), ("a/b", [pids[1]]), ("none", [])):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in members))
    (tmp_path / "a" / "c" / "cgroup.procs").mkdir(parents=True)
    assert list(processes_of(f"{prefix}{tmp_path}/a")) == pids
    assert list(processes_of(f"{prefix}{tmp_path}/a/b")) == pids[1:]
    assert processes_of(f"{prefix}{tmp_path}/none") == ()
    assert (is_cgroup(f"{prefix}{tmp_path}/none"), is_cgroup(f"{prefix}{tmp_path}")) == (True, prefix != "")
