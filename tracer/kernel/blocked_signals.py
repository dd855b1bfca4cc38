"""Signals, which are to wake the thread that waits for them, and no other."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


def block_signals() -> None:
    """Have the calling thread get no signal."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


@contextmanager
def signals_later() -> Iterator[None]:
    """Have the calling thread get no signal before the body is done."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    block_signals()
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
