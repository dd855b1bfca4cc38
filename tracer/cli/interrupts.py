"""Ctrl-C at any moment ends refleak without a traceback; a second one ends it at once."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

_STANDARD_ERROR = 2


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise KeyboardInterrupt


def _unraisable(what: Any) -> None:
    """An interrupt that came while Python could raise nothing (in a finalizer) ends the process after all."""
    if what.exc_type is KeyboardInterrupt:
        signal.raise_signal(signal.SIGINT)
    else:
        sys.__unraisablehook__(what)


@contextmanager
def last_words(words: str) -> Iterator[None]:
    """Have an interrupt in the body write a line to standard error before it ends the process, as it would without.

    For what takes long and is no work yet: imports. Nothing is raised in them, which some would catch, or tell of in a
    traceback.
    """

    def end(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        with suppress(OSError):
            os.write(_STANDARD_ERROR, f"{words}\n".encode())
        signal.raise_signal(number)

    if signal.getsignal(signal.SIGINT) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let an interrupt raise KeyboardInterrupt in the body, which may set a handler of its own; before and after it
    ends the process. Where interrupts were ignored from the start, they still are.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    sys.unraisablehook = _unraisable
    try:
        signal.signal(signal.SIGINT, _interrupted)
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is _interrupted:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
