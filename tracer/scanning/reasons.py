"""Reasons why nothing is told of an address space, as clauses."""

from __future__ import annotations

from tracer.model.reachability import AT_EXEC
from tracer.model.signals import signal_name
from tracer.model.snapshot import Process

KILLED = "it was killed by {}"
WENT_ON = "it went on before its memory was read"
UNSEEN = "its last call was not seen"
UNREADABLE = "its memory could not be read"
LIVES_ON = "it was not there yet when the others were read"
NOTHING_MADE = "it allocated nothing itself"
_IGNORED_SIGNALS = (None, 6)
"""abort() is seen; after it comes SIGABRT."""
_OF_EXEC = (NOTHING_MADE, WENT_ON)
"""Of who executes a program all the same: no more is said than that."""


def why_not(process: Process, reason: str | None, *, is_known: bool) -> str | None:
    """Return why a process is not judged, None where it is. `reason`: why its memory was not read; `is_known`: whether
    anybody tried."""
    if process.by_exec:
        return AT_EXEC if not is_known or reason in _OF_EXEC else reason
    if process.signal not in _IGNORED_SIGNALS:
        return KILLED.format(signal_name(process.signal))
    if is_known:
        return reason
    return UNSEEN if process.ended_ns is not None else LIVES_ON
