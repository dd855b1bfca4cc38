"""The blocks of one address space, and which of them an address is in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracer.reachability.memory import Addresses

Indices = npt.NDArray[np.int64]
CHUNK_HEAD = 16
"""A chunk of glibc's malloc begins so many bytes before its block; the last word of the block is the next chunk's."""
_LEAST_CHUNK, _CHUNK_STEP, _WORD = np.uint64(32), np.uint64(16), np.uint64(8)
_CLASS_PAGE = np.uint64(8192)
"""jemalloc's and mimalloc's classes are up to a quarter apart, and up to 16 bytes; tcmalloc's largest are whole pages
(jemalloc: SIZE CLASSES of its manual; mimalloc: src/page-queue.c; gperftools: src/common.h)."""
_TAGGED = 8
"""A pointer into the first so many bytes is one to the start: the rest are bits that the program keeps in it."""


def glibc_chunks(sizes: Addresses) -> Addresses:
    """Return what blocks of some sizes take of a heap of glibc's (malloc/malloc.c, request2size)."""
    chunks: Addresses = (sizes + _WORD + _CHUNK_STEP - np.uint64(1)) & ~(_CHUNK_STEP - np.uint64(1))
    return np.maximum(chunks, _LEAST_CHUNK)


def by_start(start: Addresses, size: Addresses) -> Indices:
    """Return the rows of blocks by ascending start, of those that begin at one address the larger first."""
    order: Indices = np.argsort(start)
    ordered = start[order]
    if np.any(ordered[1:] == ordered[:-1]):
        order = np.lexsort((~size, start))
    return order


class BlockTable:
    """Blocks by ascending start. Where blocks lie in others, as those of a pool in what the pool has from malloc, an
    address belongs to the innermost."""

    def __init__(
        self, start: Addresses, size: Addresses, *, uses_slack: bool = True, is_of_glibc: bool = True
    ) -> None:
        """`start`, `size`: of one length, in any order; `order` gives back the rows, by start and the larger first.

        `uses_slack`: whether what malloc rounds sizes up to may be in use: a program that asks for it
        (malloc_usable_size) may keep pointers there; in one that does not, earlier blocks may have left them.
        `is_of_glibc`: it is glibc's malloc, not one of those that have classes of sizes.
        """
        self._uses_slack, self._is_of_glibc = uses_slack, is_of_glibc
        self.order: Indices = by_start(start, size)
        self.start, self.size = start[self.order], size[self.order]
        self.is_nested = self._find_nesting()
        self.parents: Indices = np.full(len(start), -1, np.int64)
        """The block that a block lies in, -1: none."""
        self._cuts = self._nested_cuts() if self.is_nested else None

    def __len__(self) -> int:
        return len(self.start)

    def _find_nesting(self) -> bool:
        ends = self.start + np.maximum(self.size, np.uint64(1))
        return bool(np.any(np.maximum.accumulate(ends)[:-1] > self.start[1:])) if len(self.start) > 1 else False

    def _nested_cuts(self) -> tuple[Addresses, Indices]:
        """Return where the innermost block changes, and to which: -1 for none."""
        at: list[int] = []
        owner: list[int] = []
        open_: list[tuple[int, int]] = []

        def close(until: int) -> None:
            while open_ and open_[-1][0] <= until:
                end, _ = open_.pop()
                at.append(end)
                owner.append(open_[-1][1] if open_ else -1)

        for index, (start, size) in enumerate(zip(self.start.tolist(), self.size.tolist(), strict=True)):
            close(start)
            end = start + max(size, 1)
            if open_:
                self.parents[index] = open_[-1][1]
                end = min(end, open_[-1][0])
            at.append(start)
            owner.append(index)
            open_.append((end, index))
        close(1 << 64)
        last = dict(zip(at, owner, strict=True))  # the last change at a place holds
        places = np.array(sorted(last), np.uint64)
        return places, np.array([last[place] for place in places.tolist()], np.int64)

    def owners(self, addresses: Addresses, has_slack: npt.NDArray[np.bool_]) -> Indices:
        """Return the block that each word is in, -1: none. `has_slack`: where glibc made it."""
        has_slack = has_slack & self._uses_slack
        if self._cuts is not None:
            found = self._cut_at(addresses)
            return np.where((found < 0) & has_slack, self._plain(addresses, has_slack), found)
        return self._plain(addresses, has_slack)

    def targets(self, values: Addresses) -> Indices:
        """Return the block that each pointer points into, -1: none."""
        order = np.argsort(values)  # to look up a million in a table of a million is four times faster in order
        ascending = values[order]
        found = self._plain(ascending, np.zeros(len(values), np.bool_))
        if self._cuts is not None:
            inner = self._cut_at(ascending)
            found = np.where(inner < 0, found, inner)
        targets = np.empty(len(values), np.int64)
        targets[order] = found
        return targets

    def _cut_at(self, addresses: Addresses) -> Indices:
        assert self._cuts is not None
        places, owner = self._cuts
        index = np.searchsorted(places, addresses, side="right") - 1
        return np.where(index >= 0, owner[index], -1)

    def _plain(self, addresses: Addresses, has_slack: npt.NDArray[np.bool_]) -> Indices:
        if len(self.start) == 0:
            return np.full(len(addresses), -1, np.int64)
        index = np.searchsorted(self.start, addresses, side="right") - 1
        size = self.size[index]
        room = np.maximum(size, np.uint64(_TAGGED))
        if has_slack.any():
            room = np.where(has_slack, self._rounded(size), room)
        inside = (index >= 0) & (addresses - self.start[index] < room)
        return np.where(inside, index, -1)

    def _rounded(self, size: Addresses) -> Addresses:
        """Return what blocks of some sizes may have."""
        if self._is_of_glibc:
            return glibc_chunks(size) - _WORD
        in_pages = (size + _CLASS_PAGE - np.uint64(1)) // _CLASS_PAGE * _CLASS_PAGE
        quarter = size + size // np.uint64(4) + np.uint64(16)
        rounded: Addresses = np.maximum(quarter, np.where(size < _CLASS_PAGE, np.uint64(0), in_pages))
        return rounded
