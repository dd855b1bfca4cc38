"""Names of signals, for readers."""

from __future__ import annotations

import signal


def signal_name(number: int | None) -> str:
    """Return "SIGSEGV" and the like; a number without a name, a real-time signal's, as "signal 40"."""
    try:
        return signal.Signals(number or 0).name
    except ValueError:
        return f"signal {number}"
