"""Process facts in /proc (proc(5)). Nothing here fails because a process is gone: it answers None or empty.

What is asked for each process that a target starts is read here, and not by psutil: that reads the time of birth with
each question, to tell a number that was used again, which cannot be while a process is held. Nor by pathlib, of which
a name takes some ten times as long as the call.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterable

from tracer.late_dataclasses import dataclass
from tracer.late_patterns import late_pattern

_ENVIRONMENT_BYTES = 1 << 20
_WHO = late_pattern(r"^(Uid|Gid|NSpid):\t(.*)$", re.MULTILINE)
_PARENT, _STARTED = 1, 19
"""Fields of proc_pid_stat(5), from the third on."""


def command_line(pid: int) -> tuple[str, ...]:
    """Return a command with its arguments, as the process has them by now: one that has written another title over
    them, with spaces and with zeros to the end of their room, is split there."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            text = os.fsdecode(file.read())
    except OSError:
        return ()
    if not text:
        return ()
    words = text[:-1].split("\0") if text.endswith("\0") else text.split(" ")
    has_title = len(words) == 1 or (" " in words[0] and not any(words[1:]))
    return tuple(words[0].split(" ") if has_title else words)


def executable(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    except OSError:
        return None


def executes(pid: int, fd: int) -> bool:
    """Tell whether the program that a process runs is this open file."""
    try:
        return os.path.samestat(os.stat(f"/proc/{pid}/exe"), os.fstat(fd))
    except OSError:
        return False


def variables(pid: int, names: Collection[str]) -> dict[str, str]:
    """Return those of some environment variables that a process was started with."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return variables_in(file.read(_ENVIRONMENT_BYTES), names)
    except OSError:
        return {}


def variables_in(block: bytes, names: Collection[str]) -> dict[str, str]:
    """Return those of some variables that are in an environment as the kernel keeps it: `NAME=value`, each with a NUL
    behind it. Of a name that is there twice the first counts, as for getenv."""
    wanted = {os.fsencode(f"{name}="): name for name in names}
    begins, found = tuple(wanted), {}
    for text in reversed(block.split(b"\0")):
        if text.startswith(begins):
            name, _, value = text.partition(b"=")
            found[wanted[name + b"="]] = os.fsdecode(value)
    return found


def is_alive(pid: int) -> bool:
    """Return whether the process runs: a zombie does not."""
    return _state(f"/proc/{pid}") not in ("", "X", "Z")


def waits_in_kernel(pid: int) -> bool:
    """Tell whether a process's first thread waits, as for a vfork child (state D)."""
    return _state(f"/proc/{pid}") == "D"


def is_stopped(pid: int) -> bool:
    """Tell whether a process was stopped by a signal, and not continued."""
    return _state(f"/proc/{pid}") == "T"


def is_running(pid: int, tid: int) -> bool:
    """Tell whether a thread of a process has not ended."""
    return _state(f"/proc/{pid}/task/{tid}") not in ("", "X", "Z")


def _state(folder: str) -> str:
    """Return the state of a process or a thread; nothing where there is none."""
    fields = _stat(folder)
    return fields[0] if fields else ""


def _stat(folder: str) -> list[str]:
    """Return the fields of proc_pid_stat(5) from the third on, which is the state; none where there is no process."""
    try:
        with open(f"{folder}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].decode().split()
    except OSError:
        return []


def _status(pid: int) -> dict[str, list[str]]:
    """Return the words of proc_pid_status(5) that say who a process is, by name; nothing where there is none."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            return {name: words.split() for name, words in _WHO.findall(file.read().decode(errors="replace"))}
    except OSError:
        return {}


def has_one_thread(pid: int) -> bool:
    try:
        return os.stat(f"/proc/{pid}/task").st_nlink == 3
    except OSError:
        return False


def has_other_rights(pid: int) -> bool:
    """Return whether the program that a process runs gave it rights, or may not be read by it.

    Then its files in /proc are not its user's (proc_pid(5)); root's own are told by their ids.
    """
    try:
        owner = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return False
    status = _status(pid)
    if "Uid" not in status or "Gid" not in status:
        return False
    (real, effective), (real_group, effective_group) = status["Uid"][:2], status["Gid"][:2]
    return int(effective) != owner or real != effective or real_group != effective_group


def parent(pid: int) -> int | None:
    fields = _stat(f"/proc/{pid}")
    return int(fields[_PARENT]) if fields else None


def descendants(pid: int) -> tuple[int, ...]:
    """Return the numbers of a process's children, and theirs, that have not ended."""
    import psutil  # takes 15 ms, and few traces ask

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
    status, fields = _status(pid), _stat(f"/proc/{pid}")
    if "Uid" not in status or not fields:
        return None
    inner = int(status["NSpid"][-1]) if "NSpid" in status else pid
    booted_ns = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    started_ns = booted_ns + int(fields[_STARTED]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    return Credentials(inner, int(status["Uid"][1]), started_ns)


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
        return tuple(map(int, os.listdir(f"/proc/{pid}/task")))
    except OSError:
        return ()
