"""Process facts in /proc. Nothing here fails because a process is gone: it answers None or empty."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

_ENVIRONMENT_BYTES = 1 << 20


def command_line(pid: int) -> tuple[str, ...]:
    try:
        return tuple(psutil.Process(pid).cmdline())
    except psutil.Error:
        return ()


def executable(pid: int) -> str | None:
    try:
        return str(Path(f"/proc/{pid}/exe").readlink()).removesuffix(" (deleted)")
    except OSError:
        return None


def executes(pid: int, fd: int) -> bool:
    """Tell whether the program that a process runs is this open file."""
    try:
        return os.path.samestat(Path(f"/proc/{pid}/exe").stat(), os.fstat(fd))
    except OSError:
        return False


def variables(pid: int, names: Collection[str]) -> dict[str, str]:
    """Return those of some environment variables that a process was started with."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            texts = file.read(_ENVIRONMENT_BYTES).split(b"\0")
    except OSError:
        return {}
    pairs = (os.fsdecode(text).partition("=") for text in reversed(texts))
    return {name: value for name, _, value in pairs if name in names}


def is_alive(pid: int) -> bool:
    """Return whether the process runs: a zombie does not."""
    try:
        return str(psutil.Process(pid).status()) != str(psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def waits_in_kernel(pid: int) -> bool:
    """Tell whether a process's first thread waits, as for a vfork child (state D)."""
    return _state(f"/proc/{pid}") == "D"


def is_running(pid: int, tid: int) -> bool:
    """Tell whether a thread of a process has not ended."""
    return _state(f"/proc/{pid}/task/{tid}") not in ("", "X", "Z")


def _state(folder: str) -> str:
    """Return the state of a process or a thread (proc_pid_stat(5)); nothing where there is none."""
    try:
        return Path(folder, "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def has_one_thread(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/task").stat().st_nlink == 3
    except OSError:
        return False


def has_other_rights(pid: int) -> bool:
    """Return whether the program that a process runs gave it rights, or may not be read by it.

    Then its files in /proc are not its user's (proc_pid(5)); root's own are told by their ids.
    """
    try:
        process = psutil.Process(pid)
        users, groups, owner = process.uids(), process.gids(), Path(f"/proc/{pid}").stat().st_uid
    except (psutil.Error, OSError):
        return False
    return bool(users.effective != owner or users.real != users.effective or groups.real != groups.effective)


def parent(pid: int) -> int | None:
    try:
        return int(psutil.Process(pid).ppid())
    except psutil.Error:
        return None


def descendants(pid: int) -> tuple[int, ...]:
    """Return the numbers of a process's children, and theirs, that have not ended."""
    try:
        return tuple(child.pid for child in psutil.Process(pid).children(recursive=True) if is_alive(child.pid))
    except psutil.Error:
        return ()


@dataclass(frozen=True)
class Credentials:
    """Who a process is: its number in its own pid namespace, its user, when it started (ns since 1970)."""

    inner_pid: int
    user: int
    started_ns: int


def credentials(pid: int) -> Credentials | None:
    try:
        process = psutil.Process(pid)
        status = Path(f"/proc/{pid}/status").read_text()
        numbers = next((line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")), [])
        inner = int(numbers[-1]) if numbers else pid
        return Credentials(inner, process.uids().effective, int(process.create_time() * 1e9))
    except (psutil.Error, OSError, ValueError):
        return None


def read_memory(pid: int, address: int, size: int) -> bytes | None:
    """Read memory of a process, or None where that fails."""
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            return memory.read(size)
    except (OSError, ValueError, OverflowError):
        return None


def write_words(pid: int, words: Iterable[tuple[int, int]]) -> bool:
    """Write (address, value) each to the memory of a process; return whether all could be."""
    try:
        with open(f"/proc/{pid}/mem", "wb", buffering=0) as memory:
            fd = memory.fileno()
            return all(os.pwrite(fd, value.to_bytes(8, "little"), address) == 8 for address, value in words)
    except (OSError, ValueError, OverflowError):
        return False


def thread_ids(pid: int) -> tuple[int, ...]:
    """Return the threads of a process; none where it is gone."""
    try:
        return tuple(int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return ()
