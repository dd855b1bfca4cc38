"""Memory of one address space, as it was read: its regions, and those of its words that may be pointers."""

from __future__ import annotations

from dataclasses import field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tracer.late_dataclasses import dataclass
from tracer.model.reachability import RootKind
from tracer.model.snapshot import Records

Addresses = npt.NDArray[np.uint64]


class RegionKind(IntEnum):
    """What a range of memory is used for, where no block is."""

    GLOBAL = 1
    MAPPING = 2
    """Of the program's own making, or of unknown making."""
    STACK = 3
    """Of a thread that runs on: from its stack pointer up, with its thread-local storage."""
    REGISTER = 4
    """Made up: the registers of a thread that runs on."""
    ENDING_STACK = 5
    """Of the thread that ends the process."""
    ENDING_REGISTER = 6
    ALLOCATOR = 7
    """Of an allocator whose blocks are all known: what is not in a block is free, and holds nothing."""
    BREAK = 8
    """Of brk(2), and not of glibc's malloc: of the program's making, or another allocator's."""


ROOT_KINDS = {
    RegionKind.GLOBAL: RootKind.GLOBAL,
    RegionKind.MAPPING: RootKind.MAPPING,
    RegionKind.BREAK: RootKind.MAPPING,
    RegionKind.STACK: RootKind.STACK,
    RegionKind.REGISTER: RootKind.REGISTER,
    RegionKind.ENDING_STACK: RootKind.STACK,
    RegionKind.ENDING_REGISTER: RootKind.REGISTER,
}

REGION = np.dtype([("start", "<u8"), ("end", "<u8"), ("kind", "<u8")])
WORD = np.dtype([("at", "<u8"), ("value", "<u8")])
"""A word that may be a pointer, and where it stands; both divisible by what the target made them of: `at` by 8."""
THREAD = np.dtype([("tid", "<u4"), ("stack", "<u8"), ("registers", "<u8")])
"""A thread: its stack pointer, and where its registers are made to stand."""
STORAGE = np.dtype([("first", "<i8"), ("size", "<u8")])
"""Thread-local storage of a library, in every thread: where it begins, counted from the thread pointer."""
HEAD_WORDS = 3
HEAD = np.dtype([("address", "<u8"), ("before", "<u8", (HEAD_WORDS,))])
"""The words before an address that something points at: containers keep lengths there."""


def _none(dtype: np.dtype[np.void]) -> Records:
    return np.zeros(0, dtype)


@dataclass(frozen=True)
class Memory:
    """`regions` by start, apart from each other; `heads` by address; `vtables`: where words stand that point at tables
    of virtual functions, ascending. `time_ns`: when it was read."""

    regions: Records = field(default_factory=lambda: _none(REGION))
    words: Records = field(default_factory=lambda: _none(WORD))
    heads: Records = field(default_factory=lambda: _none(HEAD))
    vtables: Addresses = field(default_factory=lambda: np.zeros(0, np.uint64))
    tables: Addresses = field(default_factory=lambda: np.zeros(0, np.uint64))
    """What each of the words in `vtables` points at."""
    threads: Records = field(default_factory=lambda: _none(THREAD))
    time_ns: int = 0
    changed: Addresses = field(default_factory=lambda: np.zeros(0, np.uint64))
    """Words that differed between passes, of a process that ran on: somebody has what they are in."""
    allocator_storage: Records = field(default_factory=lambda: _none(STORAGE))
    """Of allocators that take the place of libc's."""


def regions_of(memory: Memory, addresses: Addresses) -> npt.NDArray[np.uint64]:
    """Return the RegionKind of each address; 0 where it is in none."""
    regions = memory.regions
    return picked(regions["kind"], spans_of(regions["start"], regions["end"], addresses))


def spans_of(start: Addresses, end: Addresses, addresses: Addresses) -> npt.NDArray[np.int64]:
    """Return which span each address is in, of some that are apart and ascending; -1: none."""
    if len(start) == 0:
        return np.full(len(addresses), -1, np.int64)
    index = np.searchsorted(start, addresses, side="right") - 1
    return np.where((index >= 0) & (addresses < end[index]), index, -1)


def picked(values: Addresses, rows: npt.NDArray[np.int64]) -> Addresses:
    """Return the value of each row, 0 where that is -1."""
    found = np.zeros(len(rows), np.uint64)
    inside = rows >= 0
    found[inside] = values[rows[inside]]
    return found
