"""The list of uprobe events in tracefs, which the whole machine has in common."""

from __future__ import annotations

import os
from pathlib import Path

EVENTS = Path("/sys/kernel/tracing/uprobe_events")


def tell(command: str) -> None:
    """Add an event, or take one away."""
    file = os.open(EVENTS, os.O_WRONLY)  # with O_TRUNC the kernel would drop all of them, and it has no end to go to
    try:
        os.write(file, command.encode())
    finally:
        os.close(file)
