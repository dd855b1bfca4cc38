"""The words of a process that may be pointers, read in one pass through a buffer that is used again and again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tracer.model.distinct_values import distinct
from tracer.model.snapshot import Records
from tracer.reachability.edges import ADDRESS_BITS
from tracer.reachability.memory import HEAD, HEAD_WORDS, REGION, WORD, Memory, RegionKind
from tracer.scanning.layout import Layout, Range
from tracer.scanning.process_memory import Addresses, ProcessMemory

_BUFFER_WORDS = 1 << 19
_MOST_WORDS = 1 << 25
_MOST_MAPPED = 1 << 38
_MOST_HEADS = 1 << 20
_MOST_VTABLES = 1 << 16
_VTABLE_WORDS, _LEAST_FUNCTIONS = 20, 2
"""As memcheck looks at what may be a table of virtual functions (memcheck/mc_leakcheck.c)."""
_NOTHING, _TARGET, _CONSTANT = 0, 1, 2


class TooMuch(Exception):
    """The memory is more than can be looked into; the text says why, as a clause."""


class _Spans:
    """Ranges of addresses with a label each, told quickly for many words: most words are in none."""

    def __init__(self, labelled: Sequence[tuple[int, int, int]]) -> None:
        ordered = sorted(labelled)
        self._start = np.array([start for start, _, _ in ordered], np.uint64)
        self._end = np.array([end for _, end, _ in ordered], np.uint64)
        self._label = np.array([label for _, _, label in ordered], np.uint8)
        gaps = self._start[1:] - self._end[:-1]
        cut = int(np.argmax(gaps)) + 1 if len(gaps) else 0
        halves = [slice(0, cut), slice(cut, len(ordered))]
        self._rough = [(self._start[h][0], self._end[h][-1] - self._start[h][0]) for h in halves if len(self._start[h])]
        """The heap and what is near it, and the libraries, with most of all addresses between them."""
        self._values = np.zeros(_BUFFER_WORDS, np.uint64)
        self._offsets = np.zeros(_BUFFER_WORDS, np.uint64)
        self._flags = np.zeros(_BUFFER_WORDS, np.bool_)

    def find(self, words: Addresses) -> tuple[npt.NDArray[np.int64], Addresses, npt.NDArray[np.uint8]]:
        """Return which words point into a range, without their upper bits, and the ranges' labels."""
        count = len(words)
        if not self._rough:
            nothing = np.zeros(0, np.uint64)
            return np.zeros(0, np.int64), nothing, nothing.astype(np.uint8)
        values, offsets, flags = self._values[:count], self._offsets[:count], self._flags[:count]
        np.bitwise_and(words, ADDRESS_BITS, out=values)
        np.subtract(values, self._start[0], out=offsets)
        np.less(offsets, self._end[-1] - self._start[0], out=flags)
        hits = np.flatnonzero(flags)
        found = values[hits]
        near = np.flatnonzero(np.logical_or.reduce([found - low < span for low, span in self._rough]))
        hits, found = hits[near], found[near]
        index = np.searchsorted(self._start, found, side="right") - 1
        inside = (index >= 0) & (found < self._end[index])
        return hits[inside], found[inside], self._label[index[inside]]


class PointerScan:
    """Reads what a Layout says. `deadline`: on the monotonic clock, seconds. `most_bytes`: that may be read."""

    def __init__(self, memory: ProcessMemory, plan: Layout, deadline: float, most_bytes: int | None = None) -> None:
        self._memory, self._plan, self._deadline, self._most_bytes = memory, plan, deadline, most_bytes
        targets = [(start, end, _TARGET) for start, end in plan.targets]
        self._spans = _Spans([*targets, *((start, end, _CONSTANT) for start, end in plan.constants)])
        self._buffer = np.zeros(_BUFFER_WORDS, np.uint64)
        self._words: list[Records] = []
        self._vtable_words: list[Records] = []
        self._kept = 0

    def run(self, registers: Records, register_regions: Records) -> Memory:
        """Return all that may be pointers, with those registers (WORDs at made-up places). Raises TooMuch."""
        if sum(r.end - r.start for r in self._plan.scanned) > _MOST_MAPPED:
            raise TooMuch(f"it has more than {_MOST_MAPPED >> 30} GiB mapped")
        if self._most_bytes is not None:
            size = sum(end - start for part in self._plan.scanned for start, end in self._there(part))
            if size > self._most_bytes:
                raise TooMuch(f"{size / (1 << 20):,.1f} MiB of its memory are to be read, more than --max-scan permits")
        for part in self._plan.scanned:
            for start, end in self._there(part):  # looked up late: one that runs on goes on to touch pages
                self._scan(part, start, end)
        words = np.concatenate([registers, *self._words])
        regions = np.array([(r.start, r.end, r.kind) for r in self._plan.scanned], REGION)
        regions = np.sort(np.concatenate([register_regions, regions]), order="start")
        places, tables = self._vtables()
        return Memory(regions, words, self._heads(words["value"]), places, tables)

    def _there(self, part: Range) -> Iterator[tuple[int, int]]:
        """Yield what of it is resident."""
        for start, end in self._memory.resident(part.start & ~4095, part.end, own_only=part.own_only):
            yield max(start, part.start), end
        self._check_time()

    def _scan(self, part: Range, at: int, end: int) -> None:
        while at < end:
            size = min(end - at, self._buffer.nbytes)
            done = self._memory.read(at, self._buffer[: size // 8])
            self._keep(self._buffer[: done // 8], at, part.kind)
            at = at + size if done == size else (at + done + 4096) & ~4095
            self._check_time()

    def _check_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise TooMuch("reading its memory took too long")

    def _keep(self, words: Addresses, at: int, kind: RegionKind) -> None:
        hits, values, labels = self._spans.find(words)
        places = np.uint64(at) + hits.astype(np.uint64) * np.uint64(8)
        pointers = labels == _TARGET
        self._words.append(_rows(places[pointers], values[pointers]))
        self._kept += int(np.count_nonzero(pointers))
        if self._kept > _MOST_WORDS:
            raise TooMuch(f"more than {_MOST_WORDS:,} of its words may be pointers")
        if kind != RegionKind.GLOBAL:
            constants = (labels == _CONSTANT) & (values & np.uint64(7) == 0)
            self._vtable_words.append(_rows(places[constants], values[constants]))

    def _heads(self, values: Addresses) -> Records:
        """Keep what stands before the pointers that may be a container's: those to the second word of a block, or the
        fourth, since malloc gives blocks at multiples of 16."""
        chosen = distinct(values[values % np.uint64(16) == 8])[:_MOST_HEADS]
        heads = np.zeros(len(chosen), HEAD)
        heads["address"] = chosen
        heads["before"] = self._memory.gather(chosen - np.uint64(8 * HEAD_WORDS), HEAD_WORDS)
        return heads

    def _vtables(self) -> tuple[Addresses, Addresses]:
        """Return where words stand that point at tables of virtual functions, ascending, and these tables."""
        words = np.concatenate(self._vtable_words) if self._vtable_words else np.zeros(0, WORD)
        tables, of = np.unique(words["value"], return_inverse=True)
        if len(tables) > _MOST_VTABLES or not self._plan.code:
            return np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        entries = self._memory.gather(tables, _VTABLE_WORDS)
        starts, ends = np.array(sorted(self._plan.code), np.uint64).T
        index = np.searchsorted(starts, entries, side="right") - 1
        functions = (index >= 0) & (entries < ends[index])
        chosen = np.sort(words[(functions.sum(axis=1) >= _LEAST_FUNCTIONS)[of]], order="at")
        return chosen["at"].copy(), chosen["value"].copy()


def _rows(at: Addresses, value: Addresses) -> Records:
    rows = np.zeros(len(at), WORD)
    rows["at"], rows["value"] = at, value
    return rows
