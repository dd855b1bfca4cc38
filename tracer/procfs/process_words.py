"""Processes as a user names them: by number, by the name of their program, or by their cgroup."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import psutil

from tracer.procfs.process import executable

CGROUP = "cgroup:"


def processes_of(word: str) -> tuple[int, ...]:
    """Return the numbers that a word stands for, ascending: "812", "nginx", or "cgroup:/system.slice/cron.service".

    A number is returned as it is. A name is that of the program's file or the kernel's name of the process; a cgroup
    has those below it too. This process and those above it are never meant by a name or a cgroup.
    """
    if word.isdecimal():
        return (int(word),)
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    fits = _is_below if word.startswith(CGROUP) else _is_called
    return tuple(pid for pid in _running() if pid not in own and fits(pid, word.removeprefix(CGROUP)))


def names_of_programs() -> tuple[str, ...]:
    """Return the names of the programs that run."""
    paths = filter(None, map(executable, _running()))
    return tuple(dict.fromkeys(PurePosixPath(path).name for path in paths))


def _running() -> Iterator[int]:
    return iter(sorted(psutil.pids()))


def _is_called(pid: int, name: str) -> bool:
    path = executable(pid)
    return path is not None and name in (PurePosixPath(path).name, _text(pid, "comm").rstrip("\n"))


def _is_below(pid: int, group: str) -> bool:
    """Lines are HIERARCHY:CONTROLLERS:PATH (cgroups(7)), in version 2 of cgroups only one."""
    wanted = PurePosixPath("/", group)
    for line in _text(pid, "cgroup").splitlines():
        path = PurePosixPath(line.split(":", 2)[-1])
        if executable(pid) is not None and (path == wanted or wanted in path.parents):
            return True
    return False


def _text(pid: int, file: str) -> str:
    try:
        return Path(f"/proc/{pid}/{file}").read_text(errors="replace")
    except OSError:
        return ""
