"""Mishaps: what a target holds that could not be understood, left out and counted, whatever it was.

A target is made by others, and may be damaged or made to harm. Whatever reads what it controls does so inside an
attempt: no error ends the trace, and none goes unseen.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from tracer.errors import CannotRead, RefleakError, UnsuitableTarget, place_of
from tracer.model.snapshot import EVERY_KIND, Loss

REASON = "something in the target could not be understood"
TOO_SLOW = "took too long when the trace was to end"
_REMEDY = "report it, with the program if you can give it away"
_OF_THE_TARGET = (CannotRead, UnsuitableTarget)


class _TooSlow(BaseException):
    """Raised into an attempt that goes on after the trace was to end."""


class Mishaps:
    """Counts the attempts that failed, and remembers the first."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""
        self._depth = 0
        self._began = self._patience = 0.0

    @contextmanager
    def attempt(self, *, hurried: bool = True) -> Iterator[None]:
        """Let the body fail for any reason but the user's errors and requests to end. `hurried`: else it has limits of
        its own, and only attempts within it are given up."""
        if not self._depth:
            self._began = time.monotonic()
        self._depth += hurried
        try:
            yield
        except RefleakError as error:
            if not isinstance(error, _OF_THE_TARGET):
                raise
            self._note(error)
        except (Exception, _TooSlow) as error:
            self._note(error)
        finally:
            self._depth -= hurried

    def _note(self, error: BaseException) -> None:
        self.count += 1
        if not self.first:
            self.first = TOO_SLOW if isinstance(error, _TooSlow) else place_of(error)

    def hurry(self, seconds: float) -> None:
        """Give up each attempt that takes longer than so many seconds, from now on."""
        self._patience = seconds
        signal.signal(signal.SIGALRM, self._give_up)
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)

    def calm(self) -> None:
        """Let attempts take their time again."""
        if self._patience:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._patience = 0.0

    def _give_up(self, _number: int, _frame: FrameType | None) -> None:
        if self._patience and self._depth and time.monotonic() - self._began >= self._patience:
            raise _TooSlow

    @property
    def losses(self) -> tuple[Loss, ...]:
        return (Loss(f"{REASON} (first: {self.first})", self.count, _REMEDY, EVERY_KIND),) if self.count else ()
