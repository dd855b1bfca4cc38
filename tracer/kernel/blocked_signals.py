"""Signals, which are to wake the thread that waits for them, and no other."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def block_signals() -> None:
    """Have the calling thread get no signal."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


@contextmanager
def signals_later() -> Iterator[set[int]]:
    """Have the calling thread get no signal, and no interrupt that another one gets for it, before the body is done.

    Give what was blocked before.
    """
    with _interrupts_later():
        before: set[int] = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            block_signals()  # handles what has come until now, by which it may raise
            yield before
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Keep interrupts from Python's handler. The kernel gives them to any thread that blocks none, as those of numpy's
    OpenBLAS, and Python then calls the handler in the main thread, whatever that has blocked."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            signal.raise_signal(signal.SIGINT)
