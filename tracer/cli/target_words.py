"""Target words of -p: the processes that they mean."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

from tracer.errors import NoSuchTarget, UsageError
from tracer.procfs.process_words import is_cgroup, names_of_programs, processes_of


def check_target(arguments: argparse.Namespace, what: str, help_of: str) -> None:
    """Raise UsageError unless there is a command or -p, and not both. `what`: what is to be done with it."""
    if arguments.command and arguments.pid:
        pids = ",".join([*arguments.pid, *arguments.command])
        are_pids = all(word.isdecimal() for word in arguments.command)
        raise UsageError(
            f"-p {','.join(arguments.pid)} and the command {arguments.command[0]!r}: only one can be meant",
            f"to attach to all of them: -p {pids}" if are_pids
            else f"leave one of them out; {help_of} --help shows examples",
        )
    if not arguments.command and not arguments.pid:
        raise UsageError(f"say what to {what}: a command or -p PID", f"{help_of} --help shows examples")


def pids_of(arguments: argparse.Namespace) -> tuple[int, ...]:
    """Return the processes to attach to, each once."""
    return tuple(dict.fromkeys(pid for words in arguments.pid for word in _words(words) for pid in _pids(word)))


def _words(word: str) -> Sequence[str]:
    """Part what pidof prints of several; a name may have blanks."""
    parts = word.split()
    return parts if parts and all(part.isdecimal() for part in parts) else [word]


def _pids(word: str) -> Iterable[int]:
    pids = processes_of(word)
    if pids:
        return pids
    if is_cgroup(word):
        hint = "its path is as /proc/PID/cgroup gives it, or that of its directory below /sys/fs/cgroup"
        raise NoSuchTarget(f"no process is in {word}", hint)
    if word.startswith("/") and not Path(word).exists():
        raise NoSuchTarget(f"there is no {word}", "give the path of a program, or the directory of a cgroup")
    if word.lstrip("-").isdecimal():
        raise NoSuchTarget(f"there is no process {word}")
    close = get_close_matches(word, names_of_programs(), 1)
    hint = f"did you mean -p {close[0]}?" if close else "ps -e lists what runs"
    raise NoSuchTarget(f"no process is called {word}", hint)
