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
_SOON_SECONDS = 0.01


class _TooSlow(BaseException):
    """Raised into an attempt that goes on after the trace was to end."""


class Mishaps:
    """Counts the attempts that failed, and remembers the first."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""
        self.has_given_up = False
        self._depth = 0
        self._began = self._patience = 0.0

    def attempt(self, *, hurried: bool = True) -> _Attempt:
        """Let the body fail for any reason but the user's errors and requests to end. `hurried`: else it has limits of
        its own, and only attempts within it are given up."""
        return _Attempt(self, hurried)

    def _begin(self, depth: int) -> None:
        if not self._depth:
            self._began = time.monotonic()
        self._depth += depth

    def _end(self, depth: int, error: BaseException | None) -> bool:
        """Return whether the body's error is done with."""
        is_of_the_user = isinstance(error, RefleakError) and not isinstance(error, _OF_THE_TARGET)
        is_noted = isinstance(error, (Exception, _TooSlow)) and not is_of_the_user
        try:
            if error is not None and is_noted:
                self._note(error)
        finally:
            self._depth -= depth
        return is_noted

    def _note(self, error: BaseException) -> None:
        self.count += 1
        self.has_given_up |= isinstance(error, _TooSlow)
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

    def _give_up(self, _number: int, frame: FrameType | None) -> None:
        if not self._patience or not self._depth or time.monotonic() - self._began < self._patience:
            return
        if not _is_at_an_edge(frame):
            raise _TooSlow
        signal.setitimer(signal.ITIMER_REAL, _SOON_SECONDS, self._patience)

    @property
    def losses(self) -> tuple[Loss, ...]:
        return (Loss(f"{REASON} (first: {self.first})", self.count, _REMEDY, EVERY_KIND),) if self.count else ()


class _Attempt:
    """The guard around a body. What it does itself is never given up: nobody would take what was raised there.

    Thousands are made each second: a generator would take four times as long.
    """

    __slots__ = ("_depth", "_mishaps")

    def __init__(self, mishaps: Mishaps, hurried: bool) -> None:
        self._mishaps, self._depth = mishaps, int(hurried)

    def __enter__(self) -> None:
        self._mishaps._begin(self._depth)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        return self._mishaps._end(self._depth, error)


_EDGES = frozenset({_Attempt.__enter__.__code__, _Attempt.__exit__.__code__})


def _is_at_an_edge(frame: FrameType | None) -> bool:
    """Tell whether what runs is the guard itself, between a body and what is around it."""
    while frame is not None and frame.f_code not in _EDGES:
        frame = frame.f_back
    return frame is not None
