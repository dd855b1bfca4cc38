"""Mishaps: what a target holds that could not be understood, left out and counted, whatever it was.

A target is made by others, and may be damaged or made to harm. Whatever reads what it controls does so inside an
attempt: no error ends the trace, and none goes unseen.
"""

from __future__ import annotations

import signal
import time
from types import FrameType, TracebackType

from tracer.errors import CannotRead, RefleakError, UnsuitableTarget, place_of
from tracer.model.snapshot import EVERY_KIND, Loss

REASON = "something in the target could not be understood"
TOO_SLOW = "took too long when the trace was to end"
_REMEDY = "report it, with the program if you can give it away"
_OF_THE_TARGET = (CannotRead, UnsuitableTarget)


class _TooSlow(BaseException):
    """Raised into an attempt that goes on after the trace was to end."""


class _Attempt:
    """Context of an attempt. Thousands are made each second: a generator would take four times as long."""

    __slots__ = ("_hurried", "_mishaps")

    def __init__(self, mishaps: Mishaps, *, hurried: bool) -> None:
        self._mishaps, self._hurried = mishaps, hurried

    def __enter__(self) -> None:
        self._mishaps.begin(hurried=self._hurried)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        return self._mishaps.end(error, hurried=self._hurried)


class Mishaps:
    """Counts the attempts that failed, and remembers the first."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""
        self._depth = 0
        self._began = self._patience = 0.0

    def attempt(self, *, hurried: bool = True) -> _Attempt:
        """Let the body fail for any reason but the user's errors and requests to end. `hurried`: else it has limits of
        its own, and only attempts within it are given up."""
        return _Attempt(self, hurried=hurried)

    def begin(self, *, hurried: bool) -> None:
        if not self._depth:
            self._began = time.monotonic()
        self._depth += hurried

    def end(self, error: BaseException | None, *, hurried: bool) -> bool:
        """End an attempt; tell whether that by which it failed, if anything, is noted and goes no further."""
        self._depth -= hurried
        if error is None or (isinstance(error, RefleakError) and not isinstance(error, _OF_THE_TARGET)):
            return False
        if not isinstance(error, (Exception, _TooSlow)):
            return False
        self._note(error)
        return True

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
