"""Urgency of entries: what is lost stands before what may be, what is still held, and what an exec ended."""

from __future__ import annotations

from tracer.model.findings import ALIVE_AT_EXEC, INHERITED, POSSIBLE, Leak


def urgency(leak: Leak) -> int:
    """Return 0 for what a verdict is about; the greater, the later an entry comes."""
    if leak.state in (ALIVE_AT_EXEC, INHERITED):
        return 3
    if leak.is_held:
        return 2
    return int(leak.kind != "reference" and leak.reachability == POSSIBLE)
