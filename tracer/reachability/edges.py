"""Edges from roots and from blocks to the blocks that they point at."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import fields

import numpy as np
import numpy.typing as npt

from tracer.late_dataclasses import dataclass
from tracer.model.distinct_values import is_in, is_in_ordered
from tracer.model.snapshot import Records
from tracer.reachability.block_table import BlockTable, Indices
from tracer.reachability.memory import HEAD_WORDS, Addresses, Memory, RegionKind, regions_of
from tracer.reachability.python_objects import kept_by_python, python_objects
from tracer.reachability.slice_pages import slice_pages

ADDRESS_BITS = np.uint64((1 << 48) - 1)
"""Programs keep other things in the 16 bits above."""
_LOW_BITS = np.uint64(7)
_WORD = np.uint64(8)
_TO_FIRST, _TO_SECOND = np.uint64(16), np.uint64(24)
_TO_LAST_BIN, _BEFORE_BINS, _LEAST_BINS = np.uint64(16 * 126), np.uint64(8 * 12), 32
"""From the first of the 127 bins to the last, and what stands before them. So many empty ones show where they are."""
_STRING_HEADER = np.uint64(8 * HEAD_WORDS)

AT_ONCE = 1 << 18
"""Rows that are worked on together: all columns of all would take some hundred MiB."""

Flags = npt.NDArray[np.bool_]
Narrow = npt.NDArray[np.int32]
Spans = tuple[Addresses, Addresses]


@dataclass(frozen=True)
class Edges:
    """One row per word that points at a block, of one length.

    `source`: the block that it is in, -1 for a root. `kind`: RegionKind of a root. `strong`: it points at the start,
    where containers or Python point (see `_kept_by_container`), or at what is in a page of GLib's slices.
    """

    source: Narrow
    target: Narrow
    strong: Flags
    at: Addresses
    value: Addresses
    kind: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.at)

    def __getitem__(self, rows: Flags | Indices) -> Edges:
        return Edges(*(getattr(self, name)[rows] for name in _COLUMNS))


_COLUMNS = tuple(field.name for field in fields(Edges))


def find_edges(memory: Memory, blocks: BlockTable, *, free_holds: bool = False) -> Edges:
    """Return all edges. `free_holds`: what is free in an allocator's memory is a root, since it may not be."""
    return edges_and_traces(memory, blocks, FreeWords(free_holds))[0]


def edges_and_traces(
    memory: Memory, blocks: BlockTable, free_words: FreeWords | None = None
) -> tuple[Edges, Edges]:  # fmt: skip
    """Return all edges; and the words in free memory that still point at a block, which hold nothing."""
    words, bins = memory.words, _bins(memory.words)
    free_words = free_words or FreeWords()
    pages, objects = slice_pages(words, blocks), python_objects(words)
    table, traces = _EdgeTable(len(words)), [_NO_EDGES]
    for part in _parts(words):
        found, free = _edges_of(memory, blocks, _without(bins, part), pages, objects, free_words)
        table.add(found)
        traces.append(free)
    return table.edges(), Edges(*(np.concatenate([getattr(part, name) for part in traces]) for name in _COLUMNS))


class FreeWords:
    """Tells which words hold nothing.

    `free_holds`: what is free in an allocator's memory holds, since it may not be. `freed`: ranges (`address`, `size`)
    that were seen to be freed, which hold nothing even then. `still_held`: those that were freed after the memory was
    read, which hold.
    """

    def __init__(
        self, free_holds: bool = False, freed: Records | None = None, still_held: Records | None = None
    ) -> None:  # fmt: skip
        self._free_holds, self._freed, self._still_held = free_holds, _spans(freed), _spans(still_held)

    def among(self, at: Addresses, source: Indices, kind: npt.NDArray[np.integer]) -> Flags:
        """Return it of words at some addresses. `source`: the block that each is in, -1 for none; `kind`: its
        RegionKind, 0 for none."""
        is_free: Flags = (source < 0) & ((kind == 0) | ((kind == RegionKind.ALLOCATOR) & (not self._free_holds)))
        if self._freed is not None:
            loose = np.flatnonzero((source < 0) & (kind == RegionKind.ALLOCATOR))
            is_free[loose] = _is_within(self._freed, at[loose])
        if self._still_held is not None:
            loose = np.flatnonzero(is_free)
            is_free[loose] = ~_is_within(self._still_held, at[loose])
        return is_free


class _EdgeTable:
    """Takes edges, as many as there are words at most: memory that is not written to is not there."""

    def __init__(self, most: int) -> None:
        self._columns = [np.empty(most, getattr(_NO_EDGES, name).dtype) for name in _COLUMNS]
        self._count = 0

    def add(self, edges: Edges) -> None:
        end = self._count + len(edges)
        for name, column in zip(_COLUMNS, self._columns, strict=True):
            column[self._count : end] = getattr(edges, name)
        self._count = end

    def edges(self) -> Edges:
        return Edges(*(column[: self._count] for column in self._columns))


def _edges_of(
    memory: Memory, blocks: BlockTable, words: Records, pages: Flags, objects: Addresses, free_words: FreeWords
) -> tuple[Edges, Edges]:  # fmt: skip
    value = words["value"] & ADDRESS_BITS
    target = blocks.targets(value)
    hits = np.flatnonzero(target >= 0)
    at, value, target = words["at"][hits], value[hits], target[hits]
    kind = regions_of(memory, at)
    source = blocks.owners(at, kind == RegionKind.ALLOCATOR)
    is_free = free_words.among(at, source, kind)
    traces = _narrow(source, target, np.zeros(len(at), np.bool_), at, value, kind)[np.flatnonzero(is_free)]
    kept = np.flatnonzero(~is_free & (source != target))
    source, target, at, value, kind = source[kept], target[kept], at[kept], value[kept], kind[kept]
    start = blocks.start[target]
    strong = ((value & ~_LOW_BITS) == start) | (value == start) | pages[target]
    inner = np.flatnonzero(~strong)
    value_of, start_of = value[inner], start[inner]
    strong[inner] = _kept_by_container(memory, value_of, start_of, blocks.size[target[inner]])
    strong[inner] |= kept_by_python(objects, value_of, start_of)
    kind[(source < 0) & (kind == RegionKind.ALLOCATOR)] = RegionKind.MAPPING
    return _narrow(source, target, strong, at, value, kind), traces


def _narrow(
    source: Indices, target: Indices, strong: Flags, at: Addresses, value: Addresses, kind: Addresses
) -> Edges:  # fmt: skip
    """There may be millions, more than there are blocks."""
    return Edges(source.astype(np.int32), target.astype(np.int32), strong, at, value, kind.astype(np.uint8))


_NO_ADDRESSES = np.zeros(0, np.uint64)
_NO_EDGES = _narrow(
    np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_), _NO_ADDRESSES, _NO_ADDRESSES, _NO_ADDRESSES
)


def _spans(ranges: Records | None) -> Spans | None:
    """Return ranges (`address`, `size`), which may overlap, by start: the starts, and the furthest end up to each."""
    if ranges is None:
        return None
    order = np.argsort(ranges["address"], kind="stable")
    ends = (ranges["address"] + ranges["size"])[order]
    return ranges["address"][order], np.maximum.accumulate(ends)


def _is_within(spans: Spans, addresses: Addresses) -> Flags:
    start, furthest = spans
    if len(start) == 0:
        return np.zeros(len(addresses), np.bool_)
    index = np.searchsorted(start, addresses, side="right") - 1
    within: Flags = (index >= 0) & (addresses < furthest[index])
    return within


def _bins(words: Records) -> Spans | None:
    """Return where the books of glibc's malloc stand, in libc's data and in its further arenas: they hold addresses of
    free chunks, which begin in the last word of the block before.

    An empty bin points at itself, as if it were a chunk: its two words at the place 16 bytes before the first of them
    (malloc/malloc.c, malloc_state). Before the bins stand ten fast bins, the top and the last remainder.
    """
    last = _last_bins(words)
    return (last - _TO_LAST_BIN - _BEFORE_BINS, last + _TO_FIRST) if len(last) else None


def _without(spans: Spans | None, words: Records) -> Records:
    if spans is None:
        return words
    kept: Records = words[~_is_within(spans, words["at"])]
    return kept


def _parts(words: Records) -> Iterator[Records]:
    for at in range(0, len(words), AT_ONCE):
        yield words[at : at + AT_ONCE]


def _last_bins(words: Records) -> Addresses:
    """Return the place of each arena's last bin, ascending.

    Most bins are empty. Those behind the last empty one are told by the first and the last chunk in them, which point
    at the place 16 bytes before the bin.
    """
    firsts, seconds = [_NO_ADDRESSES], [_NO_ADDRESSES]
    for part in _parts(words):
        back = part["at"] - part["value"]
        firsts.append(part["at"][back == _TO_FIRST])
        seconds.append(part["at"][back == _TO_SECOND])
    empty = np.sort(np.concatenate(firsts))
    empty = empty[is_in(empty + _WORD, np.concatenate(seconds))]
    found = []
    while len(empty) >= _LEAST_BINS:
        counts = np.arange(1, len(empty) + 1) - np.searchsorted(empty, empty - _TO_LAST_BIN)
        last = int(np.argmax(counts))
        if counts[last] < _LEAST_BINS:
            break
        first = last + 1 - counts[last]
        found.append((int(empty[first]), int(empty[last])))
        empty = np.delete(empty, slice(first, last + 1))
    if not found:
        return _NO_ADDRESSES
    lasts = np.array(sorted(last for _, last in found), np.uint64)
    behind: set[int] = set()
    for part in _parts(words):
        value = part["value"]
        value = value[(value >= lasts[0]) & (value < lasts[-1] + _TO_LAST_BIN)]
        behind.update(value[_is_within((lasts, lasts + _TO_LAST_BIN), value)].tolist())
    return np.array(sorted(_last_bin(first, last, behind) for first, last in found), np.uint64)


def _last_bin(first: int, last: int, pointed_at: Collection[int]) -> int:
    """Return the place of the last bin of an arena, of which the first and the last empty one are known."""
    while last in pointed_at and last + 16 - first <= _TO_LAST_BIN:
        last += 16
    return last


def _kept_by_container(memory: Memory, value: Addresses, start: Addresses, size: Addresses) -> Flags:
    """Tell which interior pointers are the only ones that their makers keep, as memcheck does (its manual,
    --leak-check-heuristics): a string of libstdc++ before C++11, an array whose length stands before it, an array of
    objects with destructors, an object seen as its second base class."""
    offset = value - start
    before = _words_before(memory.heads, value)
    length, capacity, last = before["before"][:, 0], before["before"][:, 1], before["before"][:, 2]
    known = before["address"] == value
    string = (offset == _STRING_HEADER) & (length <= capacity) & (capacity + _STRING_HEADER + np.uint64(1) == size)
    rest = size - _WORD
    sized = (offset == _WORD) & (last == rest)
    array = (offset == _WORD) & (last > 0) & (last <= rest) & (rest % np.maximum(last, np.uint64(1)) == 0)
    inherits = is_in_ordered(value, memory.vtables) & is_in_ordered(start, memory.vtables)
    kept: Flags = (known & (string | sized | array)) | inherits
    return kept


def _words_before(heads: Records, addresses: Addresses) -> Records:
    """Return the row of each address, one of zeros where there is none."""
    found = np.zeros(len(addresses), heads.dtype)
    if len(heads):
        index = np.minimum(np.searchsorted(heads["address"], addresses), len(heads) - 1)
        known = heads["address"][index] == addresses
        found[known] = heads[index[known]]
    return found
