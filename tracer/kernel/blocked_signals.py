"""Signals, which are to wake the thread that waits for them, and no other."""

from __future__ import annotations

import signal


def block_signals() -> None:
    """Have the calling thread get no signal."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
