"""Processes by number, by name and by cgroup."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracer.procfs.process_words import names_of_programs, processes_of


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
