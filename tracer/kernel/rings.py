"""BPF ring buffers, read as shared memory.

Layout: kernel/bpf/ringbuf.c: a page with the consumer's position, a page with the producer's, then the data, mapped
twice in a row so that no record is cut. Each record has a header of 8 bytes: its length, with a busy bit and a
discard bit on top. Pages that are mapped count as memory of this process, all of them from the start and twice, so
only a window of the data is mapped, which moves along.
"""

from __future__ import annotations

import mmap
import struct

import numpy as np
import numpy.typing as npt

_BUSY, _DISCARD = 1 << 31, 1 << 30
_HEADER = 8
_WINDOW_BYTES = 1 << 22
_PAGE = mmap.PAGESIZE
BEHIND_BYTES = 1 << 15
"""Mapped behind a window, for the record that begins in it."""
MOST_RECORD_BYTES = BEHIND_BYTES - _HEADER


class Ring:
    """One ring buffer; the caller is its only consumer."""

    def __init__(self, fd: int, size: int) -> None:
        self.fd, self._size, self._mask = fd, size, size - 1
        self._consumer = mmap.mmap(fd, _PAGE, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=0)
        self._producer = mmap.mmap(fd, _PAGE, mmap.MAP_SHARED, mmap.PROT_READ, offset=_PAGE)
        # One load or store each: struct goes byte by byte, and the kernel would see half a position, as a full ring.
        self._taken = memoryview(self._consumer)[:8].cast("Q")
        self._made = memoryview(self._producer)[:8].cast("Q")
        self._position = self._taken[0]
        self.records = 0
        """That were taken."""
        self._window_size = min(size, _WINDOW_BYTES)
        self._window_start = 0
        self._window = self._map(0)

    def _map(self, start: int) -> mmap.mmap:
        size = self._window_size + min(BEHIND_BYTES, self._size)
        return mmap.mmap(self.fd, size, mmap.MAP_SHARED, mmap.PROT_READ, offset=2 * _PAGE + start)

    def _here(self) -> int:
        """Return where the next record begins in the window, which is moved there if need be."""
        at = self._position & self._mask
        start = at & -self._window_size
        if start != self._window_start:
            self._window.close()
            self._window, self._window_start = self._map(start), start
        return at - start

    @property
    def taken_bytes(self) -> int:
        """All that was taken, headers included."""
        return self._position

    def _available(self) -> int:
        return self._made[0] - self._position

    def _consume(self, size: int) -> None:
        self._position += size
        self._taken[0] = self._position

    def read_records(self, dtype: np.dtype[np.void]) -> npt.NDArray[np.void]:
        """Take all finished records, every one of `dtype`; stops at the first that is still being written."""
        stride = _HEADER + (dtype.itemsize + 7 & ~7)
        if self._available() < stride:
            return np.zeros(0, dtype)
        framed = np.dtype({"names": ["length", "record"], "formats": ["<u4", dtype], "offsets": [0, _HEADER],
                           "itemsize": stride})  # fmt: skip
        left, pieces = self._available() // stride, [np.zeros(0, dtype)]
        while left:
            here = self._here()
            begin_inside = -(-(self._window_size - here) // stride)
            window = np.frombuffer(self._window, framed, min(left, begin_inside), here)
            busy = np.flatnonzero(window["length"] & np.uint32(_BUSY))
            taken = window["record"][: busy[0] if len(busy) else len(window)].copy()
            left = 0 if len(busy) else left - len(window)
            del window  # a mapping that is looked at cannot be closed
            self._consume(len(taken) * stride)
            self.records += len(taken)
            pieces.append(taken)
        return np.concatenate(pieces) if len(pieces) != 2 else pieces[1]

    def read_blobs(self) -> list[bytes]:
        """Take all finished records as bytes, of whatever length."""
        blobs, left = [], self._available()
        while left >= _HEADER:
            here = self._here()
            length = struct.unpack_from("<I", self._window, here)[0]
            if length & _BUSY:
                break
            size = length & ~_DISCARD
            if not length & _DISCARD:
                self.records += 1
                blobs.append(self._window[here + _HEADER : here + _HEADER + size])
            step = _HEADER + size + 7 & ~7
            self._consume(step)
            left -= step
        return blobs

    def close(self) -> None:
        self._taken.release()
        self._made.release()
        for mapped in (self._window, self._producer, self._consumer):
            mapped.close()
