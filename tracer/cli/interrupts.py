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
_WITHOUT_HANDLER = f"Signal {signal.SIGINT:d} ignored due to race condition"
"""What Python (3.10 and later) says of a signal that came for a handler, and was met when there was the default."""

_raised: list[bool] = []


def interrupt(_number: int, _frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; the next interrupt ends the process at once."""
    _raised.append(True)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise KeyboardInterrupt


def check_interrupts() -> None:
    """Raise KeyboardInterrupt where one was raised before: whatever was under way took it for an error of its own, as
    Python does in the midst of a class (up to 3.11), or met what it had left half done."""
    if _raised:
        raise KeyboardInterrupt from None


def _unraisable(what: Any) -> None:
    """An interrupt that came while Python could raise nothing (in a finalizer), or while its handler was taken away,
    ends the process after all."""
    if what.exc_type is KeyboardInterrupt or (what.exc_type is OSError and str(what.exc_value) == _WITHOUT_HANDLER):
        signal.raise_signal(signal.SIGINT)
    else:
        sys.__unraisablehook__(what)


@contextmanager
def last_words(words: str) -> Iterator[None]:
    """Have an interrupt in the body write a line to standard error before it ends the process, as it would without.

    For what takes long and is no work yet: imports. Nothing is raised in them, which some would catch, or tell of in a
    traceback.
    """

    left = [words]

    def end(number: int, _frame: FrameType | None) -> None:
        while left:
            with suppress(OSError):
                os.write(_STANDARD_ERROR, f"{left.pop()}\n".encode())
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    if signal.getsignal(signal.SIGINT) is not signal.SIG_DFL:
        yield
        return
    sys.unraisablehook = _unraisable
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
    _raised.clear()
    try:
        signal.signal(signal.SIGINT, interrupt)
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
