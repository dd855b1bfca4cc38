"""Activity of a process's threads: whether any of them ran between two moments."""

from __future__ import annotations

import re

from tracer.late_patterns import late_pattern
from tracer.procfs.process import thread_ids
from tracer.procfs.tracers import thread_status

Activity = dict[int, tuple[str, int]]
"""Thread to its state, and how often it was taken off a processor."""
_AWAY = frozenset("StT")
"""Sleeping, or stopped. In an uninterruptible wait a vfork's child may run in the same memory."""
_STATE = late_pattern(r"^State:\t(\S)", re.MULTILINE)
_SWITCHES = late_pattern(r"^(?:non)?voluntary_ctxt_switches:\t(\d+)", re.MULTILINE)


def activity(pid: int) -> Activity:
    """Return the activity of all threads so far; none where the process is gone."""
    found: Activity = {}
    for tid in thread_ids(pid):
        text = thread_status(pid, tid)
        state = _STATE.search(text)
        if state is not None:
            found[tid] = state[1], sum(map(int, _SWITCHES.findall(text)))
    return found


def is_away(thread: tuple[str, int]) -> bool:
    """Whether a thread of an Activity does not run. Where that is so, and is equal later, it has not in between."""
    return thread[0] in _AWAY
