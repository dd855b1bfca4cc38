"""BPF ring buffers, read as shared memory.

Layout: kernel/bpf/ringbuf.c: a page with the consumer's position, a page with the producer's, then the data, mapped
twice in a row so that no record is cut. Each record has a header of 8 bytes: its length, with a busy bit and a
discard bit on top.
"""

from __future__ import annotations

import mmap
import struct

import numpy as np
import numpy.typing as npt

_BUSY, _DISCARD = 1 << 31, 1 << 30
_HEADER = 8


class Ring:
    """One ring buffer; the caller is its only consumer."""

    def __init__(self, fd: int, size: int) -> None:
        page = mmap.PAGESIZE
        self.fd, self._mask = fd, size - 1
        self._consumer = mmap.mmap(fd, page, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=0)
        self._producer = mmap.mmap(fd, page + 2 * size, mmap.MAP_SHARED, mmap.PROT_READ, offset=page)
        self._data = memoryview(self._producer)[page:]
        # One load or store each: struct goes byte by byte, and the kernel would see half a position, as a full ring.
        self._taken = memoryview(self._consumer)[:8].cast("Q")
        self._made = memoryview(self._producer)[:8].cast("Q")
        self._position = self._taken[0]

    def _available(self) -> int:
        return self._made[0] - self._position

    def _consume(self, size: int) -> None:
        self._position += size
        self._taken[0] = self._position

    def read_records(self, dtype: np.dtype[np.void]) -> npt.NDArray[np.void]:
        """Take all finished records, every one of `dtype`; stops at the first that is still being written."""
        stride = _HEADER + (dtype.itemsize + 7 & ~7)
        count = self._available() // stride
        if not count:
            return np.zeros(0, dtype)
        framed = np.dtype({"names": ["length", "record"], "formats": ["<u4", dtype], "offsets": [0, _HEADER],
                           "itemsize": stride})  # fmt: skip
        window = np.frombuffer(self._data, framed, count, self._position & self._mask)
        busy = np.flatnonzero(window["length"] & np.uint32(_BUSY))
        taken = window["record"][: busy[0] if len(busy) else count].copy()
        self._consume(len(taken) * stride)
        return taken

    def read_blobs(self) -> list[bytes]:
        """Take all finished records as bytes, of whatever length."""
        blobs, left = [], self._available()
        while left >= _HEADER:
            at = self._position & self._mask
            length = struct.unpack_from("<I", self._data, at)[0]
            if length & _BUSY:
                break
            size = length & ~_DISCARD
            if not length & _DISCARD:
                blobs.append(bytes(self._data[at + _HEADER : at + _HEADER + size]))
            step = _HEADER + size + 7 & ~7
            self._consume(step)
            left -= step
        return blobs

    def close(self) -> None:
        for view in (self._taken, self._made, self._data):
            view.release()
        self._producer.close()
        self._consumer.close()
