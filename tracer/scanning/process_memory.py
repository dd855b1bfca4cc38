"""The memory of a process, read from outside: process_vm_readv(2), and which pages there are: pagemap of proc(5)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tracer.model.distinct_values import distinct
from tracer.procfs.memory import MOST_PIECES, read_pieces
from tracer.scanning.forced_reads import ForcedReads

PAGE = 4096
_PAGEMAP_ENTRY = 8
_PRESENT, _SWAPPED, _OF_FILE = 1 << 63, 1 << 62, 1 << 61
_PAGEMAP_PAGES = 1 << 18
_NEAR = 16
"""Pages that are not there, of which so few between two that are there are read with them."""
_FEW = 256
"""Pages that are looked at one by one: numpy takes as long for any number up to that."""

_AT_ONCE = 1 << 14
"""Addresses of which the words are gathered together."""
_DENSE = 8
"""Of so many pieces in each page the pages are read: a page takes 1.0 us, a piece of 24 bytes 0.4 (Linux 6.18), and to
pick them out of their pages 0.1."""
_PAGE_MASK = np.uint64(-PAGE & (1 << 64) - 1)

_PIECE = np.dtype([("base", "<u8"), ("length", "<u8")])
"""struct iovec."""

Addresses = npt.NDArray[np.uint64]


class ProcessMemory:
    """Reads from one process; what cannot be read is left out."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._pagemap = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC)
        self.sealed = ForcedReads(pid)
        """Of what the process itself may not read."""
        self.bytes_read = 0

    def close(self) -> None:
        os.close(self._pagemap)
        self.sealed.close()

    def _read(self, pieces: npt.NDArray[np.void], into: int, size: int) -> int:
        return read_pieces(self._pid, into, size, pieces.ctypes.data, len(pieces))

    def read(self, address: int, buffer: npt.NDArray[np.uint64]) -> int:
        """Fill a buffer from an address on; return how many bytes could be read."""
        done = self._read(np.array([(address, buffer.nbytes)], _PIECE), buffer.ctypes.data, buffer.nbytes)
        if not done:
            done = self.sealed.read(address, buffer)
        self.bytes_read += done
        return done

    def read_all(self, ranges: Sequence[tuple[int, int]], buffer: npt.NDArray[np.uint64]) -> bool:
        """Fill a buffer with at most MOST_PIECES ranges, all of which together are as long; False where some of it
        could not be read, and what is in the buffer is of no use."""
        pieces = np.array([(start, end - start) for start, end in ranges], _PIECE)
        if self._read(pieces, buffer.ctypes.data, buffer.nbytes) != buffer.nbytes:
            return False
        self.bytes_read += buffer.nbytes
        return True

    def words(self, address: int, count: int) -> list[int]:
        """Return so many words from an address on, fewer where they cannot be read."""
        buffer = np.zeros(count, np.uint64)
        return [int(word) for word in buffer[: self.read(address, buffer) // 8]]

    def words_by_page(self) -> Callable[[int, int], list[int]]:
        """Return what does the same as `words`, for many a few near each other: from a copy of their page, which it
        made for the first of them."""
        page, at = np.zeros(PAGE // 8, np.uint64), -1
        known: list[int] = []

        def words(address: int, count: int) -> list[int]:
            nonlocal at, known
            first, begin = address & -PAGE, (address & PAGE - 1) // 8
            if address % 8 or begin + count > len(page):
                return self.words(address, count)
            if first != at:
                done = self._read(np.array([(first, PAGE)], _PIECE), page.ctypes.data, PAGE)
                at, known = first, page[: done // 8].tolist()
            found = known[begin : begin + count]
            self.bytes_read += 8 * len(found)
            return found

        return words

    def gather(self, addresses: Addresses, words: int) -> Addresses:
        """Return so many words from each address on, as rows; zeros where they cannot be read. Addresses are multiples
        of 8; many in a row that are near each other are read sooner."""
        found = [np.zeros((0, words), np.uint64)]
        for at in range(0, len(addresses), _AT_ONCE):
            some = addresses[at : at + _AT_ONCE]
            rows = self._gather_by_page(some, words)
            found.append(self._gather_each(some, words) if rows is None else rows)
        return np.concatenate(found)

    def _gather_by_page(self, addresses: Addresses, words: int) -> Addresses | None:
        """Read whole pages; None where that is no less work, or not all of them can be read."""
        if len(addresses) < _FEW:
            return None
        last = addresses + np.uint64(8 * words - 1)
        pages = distinct(np.concatenate([addresses, last]) & _PAGE_MASK)
        if len(pages) * _DENSE > len(addresses):
            return None
        cuts = np.flatnonzero(np.diff(pages) != PAGE) + 1
        runs = list(zip(pages[[0, *cuts]].tolist(), (pages[[*cuts - 1, -1]] + np.uint64(PAGE)).tolist(), strict=True))
        buffer = np.empty(len(pages) * PAGE // 8, np.uint64)
        if len(runs) > MOST_PIECES or not self.read_all(runs, buffer):
            return None
        first = np.searchsorted(pages, addresses & _PAGE_MASK) * (PAGE // 8)
        first += (addresses % np.uint64(PAGE)).astype(np.int64) // 8
        rows: Addresses = buffer[first[:, None] + np.arange(words)]
        return rows

    def _gather_each(self, addresses: Addresses, words: int) -> Addresses:
        rows = np.zeros((len(addresses), words), np.uint64)
        at, width = 0, 8 * words
        while at < len(addresses):
            pieces = np.zeros(min(MOST_PIECES, len(addresses) - at), _PIECE)
            pieces["base"], pieces["length"] = addresses[at : at + len(pieces)], width
            size = self._read(pieces, rows.ctypes.data + at * width, len(pieces) * width)
            self.bytes_read += size
            done = size // width
            if done < len(pieces):
                rows[at + done] = 0
                done += 1
            at += done
        return rows

    def touched(self, address: int) -> bool:
        """Tell whether the page of an address is in memory, or swapped out."""
        entry = os.pread(self._pagemap, _PAGEMAP_ENTRY, address // PAGE * _PAGEMAP_ENTRY)
        return bool(int.from_bytes(entry, "little") & (_PRESENT | _SWAPPED))

    def resident(self, start: int, end: int, *, own_only: bool) -> Iterator[tuple[int, int]]:
        """Yield ranges whose pages were touched. `own_only`: not those that still are a file's."""
        most_apart = 1 if own_only else _NEAR
        for first in range(start // PAGE, end // PAGE, _PAGEMAP_PAGES):
            count = min(_PAGEMAP_PAGES, end // PAGE - first)
            data = os.pread(self._pagemap, count * _PAGEMAP_ENTRY, first * _PAGEMAP_ENTRY)
            find = _few_runs if len(data) <= _FEW * _PAGEMAP_ENTRY else _runs
            for begin, behind in find(data, most_apart, own_only=own_only):
                yield (first + begin) * PAGE, (first + behind) * PAGE


def _runs(data: bytes, most_apart: int, *, own_only: bool) -> Iterable[tuple[int, int]]:
    """Return the pages that are there, from the first to behind the last, of entries of a pagemap. Pages that are at
    most so far apart are in one."""
    entries = np.frombuffer(data, np.uint64, len(data) // _PAGEMAP_ENTRY)
    there = (entries & np.uint64(_PRESENT | _SWAPPED)) != 0
    if own_only:
        there &= (entries & np.uint64(_OF_FILE)) == 0
    pages = np.flatnonzero(there)
    if len(pages) == 0:
        return ()
    breaks = np.flatnonzero(np.diff(pages) > most_apart)
    begins = pages[np.concatenate([[0], breaks + 1])]
    ends = pages[np.concatenate([breaks, [len(pages) - 1]])] + 1
    return zip(begins.tolist(), ends.tolist(), strict=True)


def _few_runs(data: bytes, most_apart: int, *, own_only: bool) -> Iterable[tuple[int, int]]:
    """Return the same as `_runs`, sooner where there are few: most mappings of a process have some ten pages."""
    wanted, unwanted = _PRESENT | _SWAPPED, _OF_FILE if own_only else 0
    found: list[tuple[int, int]] = []
    begin = last = -1
    for page, entry in enumerate(memoryview(data[: len(data) // _PAGEMAP_ENTRY * _PAGEMAP_ENTRY]).cast("Q")):
        if not entry & wanted or entry & unwanted:
            continue
        if begin >= 0 and page - last > most_apart:
            found.append((begin, last + 1))
            begin = -1
        if begin < 0:
            begin = page
        last = page
    if begin >= 0:
        found.append((begin, last + 1))
    return found
