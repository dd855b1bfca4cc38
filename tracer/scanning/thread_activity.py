"""Activity of a process's threads: whether any of them ran between two moments."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tracer.late_patterns import late_pattern
from tracer.procfs.process import thread_ids

Activity = dict[int, tuple[str, int]]
"""Thread to its state, and how often it was taken off a processor."""
_AWAY = frozenset("StT")
"""Sleeping, or stopped. In an uninterruptible wait a vfork's child may run in the same memory."""
_STATE = late_pattern(r"^State:\t(\S)", re.MULTILINE)
_SWITCHES = late_pattern(r"^(?:non)?voluntary_ctxt_switches:\t(\d+)", re.MULTILINE)
_TRACER = late_pattern(r"^TracerPid:\t(\d+)", re.MULTILINE)


def activity(pid: int) -> Activity:
    """Return the activity of all threads so far; none where the process is gone."""
    found: Activity = {}
    for tid in thread_ids(pid):
        text = _status(pid, tid)
        state = _STATE.search(text)
        if state is not None:
            found[tid] = state[1], sum(map(int, _SWITCHES.findall(text)))
    return found


def is_away(thread: tuple[str, int]) -> bool:
    """Whether a thread of an Activity does not run. Where that is so, and is equal later, it has not in between."""
    return thread[0] in _AWAY


def tracer_of(pid: int) -> str | None:
    """Return who traces a thread of a process, as "strace (pid 812)"; None where nobody else does."""
    for tid in thread_ids(pid):
        found = _TRACER.search(_status(pid, tid))
        tracer = int(found[1]) if found is not None else 0
        if tracer not in (0, os.getpid()):
            return f"{_name(tracer)} (pid {tracer})"
    return None


def _status(pid: int, tid: int) -> str:
    try:
        return Path(f"/proc/{pid}/task/{tid}/status").read_text(errors="replace")
    except OSError:
        return ""


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return "a process"
