"""Work on many things that processors do side by side: some of it here, the rest in forked copies of refleak."""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Generic, TypeVar

from tracer.kernel.forked_copy import begin_copy

T = TypeVar("T")
R = TypeVar("R")
_MOST_PARTS = 16
_PATIENCE = 3
"""How many times as long as this process for its own part a copy may take, and _LEAST_SECONDS more."""
_LEAST_SECONDS = 5.0
_NUMBER_BYTES = 4
_MOST_RUNS = 1000
"""They fit into a page, the least that a pipe holds."""


def side_by_side(work: Callable[[T], R], things: Sequence[T], least: int) -> list[R]:
    """Return what `work` returns for each of some things, in their order; where there are at least `least` for each of
    two processors, by several of them. What is returned must be fit for pickle.

    Who has done one takes the next that nobody has. What a copy has taken that fails, or takes too long, is done here.
    """
    count = min(len(os.sched_getaffinity(0)), len(things) // least, _MOST_PARTS)
    if count < 2:
        return [work(thing) for thing in things]
    queue = _Queue(range(count, len(things)))

    def part(number: int) -> dict[int, R]:
        return {at: work(things[at]) for at in chain((number,), queue)}

    began, copies = time.monotonic(), list[_Copy[dict[int, R]]]()
    try:
        copies += [_Copy(part, number) for number in range(1, count)]
        done = part(0)
        deadline = time.monotonic() + _PATIENCE * (time.monotonic() - began) + _LEAST_SECONDS
        for copy in copies:
            done |= copy.result(deadline) or {}
    finally:
        for copy in copies:
            copy.close()
        queue.close()
    return [done[at] if at in done else work(thing) for at, thing in enumerate(things)]


class _Queue:
    """Numbers that this process and its copies take, each once. A pipe holds the first of each run of them."""

    def __init__(self, numbers: range) -> None:
        self._numbers, self._run = numbers, len(numbers) // _MOST_RUNS + 1
        self._file, end = os.pipe()
        try:
            begins = range(numbers.start, numbers.stop, self._run)
            os.write(end, b"".join(begin.to_bytes(_NUMBER_BYTES, "little") for begin in begins))
        finally:
            os.close(end)

    def __iter__(self) -> Iterator[int]:
        while begin := os.read(self._file, _NUMBER_BYTES):
            first = int.from_bytes(begin, "little")
            yield from range(first, min(first + self._run, self._numbers.stop))

    def close(self) -> None:
        os.close(self._file)


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
