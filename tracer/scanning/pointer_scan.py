"""The words of a process that may be pointers, read in one pass through a buffer that is used again and again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tracer.model.distinct_values import distinct
from tracer.model.joined_rows import joined_rows
from tracer.model.snapshot import Records
from tracer.procfs.memory import MOST_PIECES
from tracer.reachability.edges import ADDRESS_BITS
from tracer.reachability.memory import HEAD, HEAD_WORDS, REGION, WORD, Memory, RegionKind
from tracer.scanning.layout import Layout, Range
from tracer.scanning.process_memory import Addresses, ProcessMemory

_BUFFER_WORDS = 1 << 19
_IN_CACHE = 1 << 15
"""Words that are looked at together: what is made of them stays in the processor's cache."""
_MOST_WORDS = 1 << 25
_MOST_MAPPED = 1 << 38
_MOST_HEADS = 1 << 20
_LEAST_ADDRESS, _MOST_ADDRESS = np.uint64(1 << 12), np.uint64(1 << 47)
"""Of a program's memory (Documentation/arch/x86/x86_64/mm.rst)."""
_MOST_VTABLES = 1 << 16
_VTABLE_WORDS, _LEAST_FUNCTIONS = 20, 2
"""As memcheck looks at what may be a table of virtual functions (memcheck/mc_leakcheck.c)."""
_NOTHING, _TARGET, _CONSTANT = 0, 1, 2
_Piece = tuple[int, int, RegionKind]
"""Memory of one kind, from its start to its end."""


class TooMuch(Exception):
    """The memory is more than can be looked into; the text says why, as a clause."""


def check_mapped(ranges: Iterable[tuple[int, int]]) -> None:
    """Raise TooMuch where more is mapped than can be looked up page by page."""
    if sum(end - start for start, end in ranges) > _MOST_MAPPED:
        raise TooMuch(f"it has more than {_MOST_MAPPED >> 30} GiB mapped")


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

    def find(self, words: Addresses) -> tuple[npt.NDArray[np.int64], Addresses, npt.NDArray[np.uint8]]:
        """Return which words point into a range, without their upper bits, and the ranges' labels."""
        if not self._rough or not len(words):
            nothing = np.zeros(0, np.uint64)
            return np.zeros(0, np.int64), nothing, nothing.astype(np.uint8)
        hits, found = self._roughly(words)
        near = np.flatnonzero(np.logical_or.reduce([found - low < span for low, span in self._rough]))
        hits, found = hits[near], found[near]
        index = np.searchsorted(self._start, found, side="right") - 1
        inside = (index >= 0) & (found < self._end[index])
        return hits[inside], found[inside], self._label[index[inside]]

    def _roughly(self, words: Addresses) -> tuple[npt.NDArray[np.int64], Addresses]:
        """Return which words lie between the first range and the last, and these words without their upper bits."""
        low, span = self._start[0], self._end[-1] - self._start[0]
        hits, found = [], []
        for at in range(0, len(words), _IN_CACHE):
            values = words[at : at + _IN_CACHE] & ADDRESS_BITS
            near = np.flatnonzero(values - low < span)
            hits.append(near + at)
            found.append(values[near])
        return np.concatenate(hits), np.concatenate(found)


class PointerScan:
    """Reads what a Layout says. `deadline`: on the monotonic clock, seconds. `most_bytes`: that may be read."""

    def __init__(self, memory: ProcessMemory, plan: Layout, deadline: float, most_bytes: int | None = None) -> None:
        self._memory, self._plan, self._deadline, self._most_bytes = memory, plan, deadline, most_bytes
        memory.sealed.ranges = plan.sealed
        targets = [(start, end, _TARGET) for start, end in plan.targets]
        self._spans = _Spans([*targets, *((start, end, _CONSTANT) for start, end in plan.constants)])
        self._buffer = np.zeros(0, np.uint64)
        self._words: list[Records] = []
        self._vtable_words: list[Records] = []
        self._kept = 0

    def run(self, registers: Records, register_regions: Records) -> Memory:
        """Return all that may be pointers, with those registers (WORDs at made-up places). Raises TooMuch."""
        check_mapped((part.start, part.end) for part in self._plan.scanned)
        if self._most_bytes is not None:
            size = sum(end - start for part in self._plan.scanned for start, end in self._there(part))
            if size > self._most_bytes:
                raise TooMuch(f"{size / (1 << 20):,.1f} MiB of its memory are to be read, more than --max-scan permits")
        for batch in self._batches():
            self._scan_batch(batch)
        if self._memory.sealed.refused:
            raise TooMuch("another process traces it, and what it may not read itself cannot be read then")
        words = joined_rows([registers, *self._words])
        regions = np.array([(r.start, r.end, r.kind) for r in self._plan.scanned], REGION)
        regions = np.sort(joined_rows([register_regions, regions]), order="start")
        places, tables = self._vtables()
        return Memory(regions, words, self._heads(words["value"]), places, tables)

    def _there(self, part: Range) -> Iterator[tuple[int, int]]:
        """Yield what of it is resident."""
        for start, end in self._memory.resident(part.start & ~4095, part.end, own_only=part.own_only):
            yield max(start, part.start), end
        self._check_time()

    def _batches(self) -> Iterator[list[_Piece]]:
        """Yield what is resident, as much at a time as is read at once. It is looked up late: one that runs on goes on
        to touch pages."""
        batch: list[_Piece] = []
        room = 8 * _BUFFER_WORDS
        for part in self._plan.scanned:
            for at, end in self._there(part):
                while at < end:
                    size = min(end - at, room)
                    batch.append((at, at + size, part.kind))
                    at, room = at + size, room - size
                    if not room or len(batch) == MOST_PIECES:
                        yield batch
                        batch, room = [], 8 * _BUFFER_WORDS
        if batch:
            yield batch

    def _scan_batch(self, batch: list[_Piece]) -> None:
        words = self._room(sum(end - at for at, end, _ in batch) // 8)
        if self._memory.read_all([(at, end) for at, end, _ in batch], words):
            self._keep(words, batch)
        else:
            for piece in batch:
                self._scan(*piece)
        self._check_time()

    def _scan(self, at: int, end: int, kind: RegionKind) -> None:
        """Read what of a piece can be read."""
        while at < end:
            size = end - at
            words = self._room(size // 8)
            done = self._memory.read(at, words) & ~7
            self._keep(words[: done // 8], [(at, at + done, kind)])
            at = at + size if done == size else (at + done + 4096) & ~4095
            self._check_time()

    def _room(self, count: int) -> Addresses:
        if len(self._buffer) < count:
            self._buffer = np.empty(count, np.uint64)
        return self._buffer[:count]

    def _check_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise TooMuch("reading its memory took too long")

    def _keep(self, words: Addresses, pieces: list[_Piece]) -> None:
        """Keep of the words of some pieces those that may be pointers."""
        hits, values, labels = self._spans.find(words)
        starts, ends, kinds = np.array(pieces, np.uint64).T
        behind = np.cumsum(ends - starts, dtype=np.uint64)
        offsets = hits.astype(np.uint64) * np.uint64(8)
        of = np.searchsorted(behind, offsets, side="right")
        places = offsets + (ends - behind)[of]
        pointers = labels == _TARGET
        self._words.append(_rows(places[pointers], values[pointers]))
        self._kept += int(np.count_nonzero(pointers))
        if self._kept > _MOST_WORDS:
            raise TooMuch(f"more than {_MOST_WORDS:,} of its words may be pointers")
        constants = (labels == _CONSTANT) & (values & np.uint64(7) == 0) & (kinds != RegionKind.GLOBAL)[of]
        self._vtable_words.append(_rows(places[constants], values[constants]))

    def _heads(self, values: Addresses) -> Records:
        """Keep what stands before the pointers that may be a container's: those to the second word of a block, or the
        fourth, since malloc gives blocks at multiples of 16."""
        is_address = values - _LEAST_ADDRESS < _MOST_ADDRESS - _LEAST_ADDRESS  # a register may hold any number
        chosen = distinct(values[is_address & (values % np.uint64(16) == 8)])[:_MOST_HEADS]
        heads = np.zeros(len(chosen), HEAD)
        heads["address"] = chosen
        heads["before"] = self._memory.gather(chosen - np.uint64(8 * HEAD_WORDS), HEAD_WORDS)
        return heads

    def _vtables(self) -> tuple[Addresses, Addresses]:
        """Return where words stand that point at tables of virtual functions, ascending, and these tables."""
        words = joined_rows(self._vtable_words) if self._vtable_words else np.zeros(0, WORD)
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
