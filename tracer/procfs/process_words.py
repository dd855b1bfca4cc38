"""Processes as a user names them: by number, by the name of their program, or by their cgroup."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from tracer.procfs.process import executable

CGROUP = "cgroup:"
_MEMBERS = "cgroup.procs"


def processes_of(word: str) -> tuple[int, ...]:
    """Return the numbers that a word stands for, ascending: "812", "nginx", or "cgroup:/system.slice/cron.service".

    A number is returned as it is. A name is that of the program's file, with its folder or without, or the kernel's
    name of the process. A cgroup has those below it too; its directory stands for it, with "cgroup:" or without. This
    process and those above it are never meant by a name or a cgroup.
    """
    if word.isdecimal():
        return (int(word),)
    import psutil  # as in tracer.procfs.process

    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    name = word.removeprefix(CGROUP)
    if (listed := _listed_below(name)) is not None:
        return tuple(pid for pid in sorted(listed - own) if executable(pid) is not None)
    fits = _is_below if word.startswith(CGROUP) else _is_called
    return tuple(pid for pid in _running() if pid not in own and fits(pid, name))


def is_cgroup(word: str) -> bool:
    """Tell whether a word means a cgroup."""
    return word.startswith(CGROUP) or _listed_below(word) is not None


def names_of_programs() -> tuple[str, ...]:
    """Return the names of the programs that run."""
    paths = filter(None, map(executable, _running()))
    return tuple(dict.fromkeys(PurePosixPath(path).name for path in paths))


def _running() -> Iterator[int]:
    import psutil

    return iter(sorted(psutil.pids()))


def _listed_below(path: str) -> set[int] | None:
    """Return the processes in the cgroup of a directory and in those below it; None where it is no such directory."""
    if not path.startswith("/") or not Path(path, _MEMBERS).is_file():
        return None
    pids: set[int] = set()
    for folder, _, files in os.walk(path):
        if _MEMBERS in files:
            with suppress(OSError):  # of one with threads of others no processes are told (cgroups(7))
                pids.update(int(pid) for pid in Path(folder, _MEMBERS).read_text().split())
    return pids


def _is_called(pid: int, name: str) -> bool:
    path = executable(pid)
    if path is None or "/" in name:
        return path is not None and path == os.path.realpath(name)
    return name in (PurePosixPath(path).name, _text(pid, "comm").rstrip("\n"))


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
