"""Resident pages of a process, by /proc/PID/smaps (proc(5)) and what its parts are used for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tracer.model.reachability import Resident
from tracer.model.snapshot import Records
from tracer.procfs.maps import parse_smaps
from tracer.reachability.block_table import CHUNK_HEAD, by_start, glibc_chunks
from tracer.reachability.memory import RegionKind
from tracer.scanning.layout import Layout, Range

_HEAP = "[heap]"
_NO_PLAN = Layout((), (), (), ())
_STACKS = (RegionKind.STACK, RegionKind.ENDING_STACK)


class ResidentPages:
    """Sums by use; `spans`: where an allocator's blocks are, ascending; `heap`: the one of brk(2), if there is one."""

    def __init__(self, text: str, plan: Layout) -> None:
        """`text`: of /proc/PID/smaps; nothing is made of it before `settle`."""
        self._text, self._plan = text, plan
        self.total = self.allocator = self.stacks = self.files = self.data = 0
        self.spans: list[tuple[int, int]] = []
        self.heap: tuple[int, int] | None = None
        self._ranges: list[Range] = []
        self._ends: list[int] = []

    def settle(self) -> None:
        """Sum up, once, now that nobody is held for it; the text is much longer than the sums."""
        text, self._text = self._text, ""
        if not text:
            return
        self._ranges = sorted(self._plan.scanned, key=lambda part: part.start)
        self._ends = [part.end for part in self._ranges]
        for entry, size, anonymous in parse_smaps(text):
            self._add(entry.start, entry.end, entry.inode != 0, entry.path, size, anonymous)
        self._plan, self._ranges, self._ends = _NO_PLAN, [], []

    def _add(self, start: int, end: int, is_file: bool, path: str, size: int, anonymous: int) -> None:
        """Count an entry. One in which arenas of malloc lie is taken for theirs: neighbours are one entry."""
        self.total += size
        kinds = {part.kind for part in self._within(start, end)}
        if path == _HEAP or RegionKind.ALLOCATOR in kinds:
            self.allocator += size
            self.spans.append((start, end))
            if path == _HEAP:
                self.heap = start, end
        elif kinds.intersection(_STACKS) or path == "[stack]":
            self.stacks += size
        elif is_file:
            self.files += size - min(anonymous, size)
            self.data += min(anonymous, size)

    def _within(self, start: int, end: int) -> Iterable[Range]:
        for index in range(bisect_left(self._ends, start + 1), len(self._ranges)):
            if self._ranges[index].start >= end:
                return
            yield self._ranges[index]

    def with_blocks(self, blocks: Records, *, knows_all: bool, is_of_glibc: bool = True) -> Resident:
        """Return the sums with what live blocks (ALLOCATION_RECORDs) are of them: as if all their pages were resident,
        but for those of more than there is. `knows_all`: no other block can be the last of the heap. `is_of_glibc`: it
        is glibc's malloc that gave them."""
        self.settle()
        order = _outermost(blocks)
        start, size = blocks["address"][order], blocks["size"][order]
        inside = np.zeros(len(order), np.bool_)
        for begin, end in self.spans:
            inside |= (start >= begin) & (start < end)
        live = min(int(size[inside].sum()), self.allocator)
        chunks = int(glibc_chunks(size[inside]).sum()) if is_of_glibc else 0
        rounding = max(min(chunks, self.allocator) - live, 0)
        other = self.total - self.allocator - self.stacks - self.files - self.data
        apart = min(int(size[~inside].sum()), other)
        found = Resident(
            self.total, live + apart, self.allocator - live - rounding, self.stacks, self.files, self.data,
            other - apart, rounding=rounding,
        )  # fmt: skip
        return self._with_top(found, blocks, order) if knows_all and is_of_glibc and self.heap is not None else found

    def _with_top(self, found: Resident, blocks: Records, order: npt.NDArray[np.int64]) -> Resident:
        assert self.heap is not None
        first, end = np.searchsorted(blocks["address"][order], np.array(self.heap, np.uint64)).tolist()
        if first == end:
            return found
        last = blocks[order[end - 1]]
        taken = int(glibc_chunks(blocks["size"][order[first : end - 1]]).sum())
        free = int(last["address"]) - CHUNK_HEAD - self.heap[0] - taken
        return replace(
            found, top_stack=int(last["stack"]), top_size=int(last["size"]), top_made_ns=int(last["time_ns"]),
            free_below_top=max(0, free),
        )  # fmt: skip


def _outermost(blocks: Records) -> npt.NDArray[np.int64]:
    """Return the rows of the blocks that lie in no other, ascending: those of a pool have no memory of their own."""
    order = by_start(blocks["address"], blocks["size"])
    start, size = blocks["address"][order], blocks["size"][order]
    ends = np.maximum.accumulate(start + size)
    rows: npt.NDArray[np.int64] = order[np.append(True, start[1:] >= ends[:-1])[: len(order)]]
    return rows


def read_resident(pid: int, plan: Layout) -> ResidentPages | None:
    """Return None where it cannot be read: a kernel may be made without it."""
    try:
        return ResidentPages(Path(f"/proc/{pid}/smaps").read_text(errors="replace"), plan)
    except OSError:
        return None
