"""Words for a look at the memory of processes that run on: for how long they stood, and why some were not read."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.model.reachability import Scan
from tracer.report.amounts import duration


def look_lines(scans: Sequence[Scan]) -> list[str]:
    """Return how long the processes stood whose memory was read, and why that of others was not."""
    read = [scan for scan in scans if scan.reason is None]
    why = dict.fromkeys(scan.reason for scan in scans if scan.reason is not None)
    stood = [scan.held_ns for scan in read if scan.why_running is None]
    held = [f"held {duration(max(stood))} while its memory was read"] if stood else []
    ran = sorted({f"{how_it_was_read(scan.passes)}: {scan.why_running}" for scan in read if scan.why_running})
    return [*held, *ran, *(f"not looked into: {reason}" for reason in why)]


def how_it_was_read(passes: int) -> str:
    """Return how a process was read that was not stopped for it."""
    return "read while all its threads slept" if passes == 1 else f"read {passes} times while it ran"
