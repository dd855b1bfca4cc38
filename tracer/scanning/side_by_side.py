"""Work on many things that processors do side by side: one part of it here, the others in forked copies of refleak."""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from tracer.kernel.forked_copy import begin_copy

T = TypeVar("T")
R = TypeVar("R")
_MOST_PARTS = 16
_PATIENCE = 3
"""How many times as long as this process for its own part a copy may take, and _LEAST_SECONDS more."""
_LEAST_SECONDS = 5.0


def side_by_side(work: Callable[[T], R], things: Sequence[T], least: int) -> list[R]:
    """Return what `work` returns for each of some things, in their order; where there are at least `least` for each of
    two processors, by several of them. What is returned must be fit for pickle.

    A part whose copy fails, or takes too long, is done here.
    """
    count = min(len(os.sched_getaffinity(0)), len(things) // least, _MOST_PARTS)
    if count < 2:
        return [work(thing) for thing in things]

    def part(number: int) -> list[R]:
        return [work(thing) for thing in things[number::count]]

    began = time.monotonic()
    copies = [_Copy(part, number) for number in range(1, count)]
    try:
        parts = [part(0)]
        deadline = time.monotonic() + _PATIENCE * (time.monotonic() - began) + _LEAST_SECONDS
        for number, copy in enumerate(copies, 1):
            done = copy.result(deadline)
            parts.append(part(number) if done is None else done)
    finally:
        for copy in copies:
            copy.close()
    found = [iter(one) for one in parts]
    return [next(found[at % count]) for at in range(len(things))]


class _Copy(Generic[R]):
    def __init__(self, work: Callable[[int], R], number: int) -> None:
        """Fork. A machine that permits no more processes has one part done here."""
        self._pid = self._ended = -1
        self._file = os.memfd_create("refleak-part")
        tracer = os.getpid()
        try:
            with warnings.catch_warnings():  # Python 3.12 warns of threads: the copy needs none of them
                warnings.simplefilter("ignore", DeprecationWarning)
                self._pid = os.fork()
        except OSError:
            return
        if self._pid == 0:
            self._work(work, number, tracer)
        self._ended = os.pidfd_open(self._pid)

    def _work(self, work: Callable[[int], R], number: int, tracer: int) -> None:
        """Never return. What goes wrong goes wrong once more where it can be said."""
        status = 1
        try:
            if begin_copy(tracer):
                with open(self._file, "wb", closefd=False) as file:
                    pickle.dump(work(number), file, pickle.HIGHEST_PROTOCOL)
                status = 0
        finally:
            os._exit(status)

    def result(self, deadline: float) -> Any:
        """Return what the work returned; None where it failed, or was not done by then (time.monotonic)."""
        if self._ended < 0 or not select.select([self._ended], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return None
        _, status = os.waitpid(self._pid, 0)
        self._pid = -1
        if status:
            return None
        with open(self._file, "rb", closefd=False) as file:
            file.seek(0)
            return pickle.load(file)

    def close(self) -> None:
        """End the copy, if it has not ended."""
        if self._pid > 0:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        for file in (self._file, self._ended):
            if file >= 0:
                os.close(file)
