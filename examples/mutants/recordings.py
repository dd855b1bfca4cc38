"""What a recording of refleak says of references: stacks as calls, and the outstanding entries."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from program import Calls, Program

from tracer.analysis import analyse
from tracer.analysis.lives import Life, courses
from tracer.analysis.stacks import SymbolizedStacks
from tracer.errors import CannotRead
from tracer.model.findings import ErrorFinding, FrameList, Leak
from tracer.model.operations import Operation
from tracer.model.records import FRAME_ADDRESS_MASK
from tracer.model.statistics import NEVER_PUT
from tracer.recording.reader import read_recording

_CALL_BYTES = 5


@dataclass(frozen=True)
class Analysed:
    leaks: tuple[Leak, ...]
    errors: tuple[ErrorFinding, ...]
    complete: bool
    crashed: bool
    seconds: float
    """Processor time of the analysis."""


class Unfinished(Exception):
    """A trace that did not end."""


class Run:
    """One traced run of a program."""

    def __init__(self, program: Program, path: Path) -> None:
        self._program = program
        try:
            recording = read_recording(path)
        except CannotRead:
            raise Unfinished(path) from None
        if recording.symbols is None:
            raise Unfinished(path)
        self._snapshot, self._symbols = recording.snapshot, recording.symbols
        self._book = SymbolizedStacks(self._snapshot.stacks, self._snapshot.binaries, self._symbols)

    def analysed(self) -> Analysed:
        before = time.process_time()
        found = analyse(self._snapshot, self._symbols)
        crashed = any(process.signal for process in self._snapshot.processes)
        return Analysed(found.leaks, found.errors, self._snapshot.complete, crashed, time.process_time() - before)

    def calls(self, stack: int) -> Calls:
        return as_calls(self._book.get(stack).frames)

    def get_counts(self) -> Counter[int]:
        """Return how often each stack got, of objects that ended; those that create are among them."""
        return self._counts("get_stack", Operation.GET)

    def put_counts(self) -> Counter[int]:
        """Return how often each stack put, of objects that ended."""
        counts = self._counts("put_stack", Operation.PUT)
        del counts[int(NEVER_PUT)]
        return counts

    def _counts(self, column: str, operation: Operation) -> Counter[int]:
        pairs, history = self._snapshot.balanced.pairs, self._snapshot.history
        counts = Counter[int]()
        for stack, count in zip(pairs[column].tolist(), pairs["count"].tolist(), strict=True):
            counts[stack] += count
        counts.update(history["stack"][history["operation"] == operation].tolist())
        return counts

    def call_addresses(self, stack: int) -> list[int]:
        """Return the link addresses of the calls of a stack, leaf first."""
        return [(key & FRAME_ADDRESS_MASK) - _CALL_BYTES for key in self._snapshot.stacks[stack].frames]

    def lives(self) -> Iterator[tuple[str, Life]]:
        """Yield what objects that ended went through, each distinct course once, with its family."""
        for number, name in self._snapshot.types.items():
            for life in courses(self._snapshot.balanced.courses, number):
                yield self._program.family(name), life


def as_calls(frames: FrameList) -> Calls:
    """Return functions without the suffixes of compilers' clones, and lines."""
    return tuple(((frame.function or "?").split(".")[0], frame.line or 0) for frame in frames)
