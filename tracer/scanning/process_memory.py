"""The memory of a process, read from outside: process_vm_readv(2), and which pages there are: pagemap of proc(5)."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

PAGE = 4096
_PAGEMAP_ENTRY = 8
_PRESENT, _SWAPPED, _OF_FILE = np.uint64(1 << 63), np.uint64(1 << 62), np.uint64(1 << 61)
_PAGEMAP_PAGES = 1 << 18
_NEAR = 16
"""Pages that are not there, of which so few between two that are there are read with them."""
_MOST_PIECES = 1024
"""IOV_MAX."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.process_vm_readv.restype = ctypes.c_ssize_t
_libc.process_vm_readv.argtypes = [
    ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong
]  # fmt: skip
_PIECE = np.dtype([("base", "<u8"), ("length", "<u8")])
"""struct iovec."""

Addresses = npt.NDArray[np.uint64]


class ProcessMemory:
    """Reads from one process; what cannot be read is left out."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._pagemap = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC)
        self.bytes_read = 0

    def close(self) -> None:
        os.close(self._pagemap)

    def _read(self, pieces: npt.NDArray[np.void], into: int, size: int) -> int:
        local = np.array([(into, size)], _PIECE)
        done = _libc.process_vm_readv(self._pid, local.ctypes.data, 1, pieces.ctypes.data, len(pieces), 0)
        self.bytes_read += max(done, 0)
        return int(max(done, 0))

    def read(self, address: int, buffer: npt.NDArray[np.uint64]) -> int:
        """Fill a buffer from an address on; return how many bytes could be read."""
        return self._read(np.array([(address, buffer.nbytes)], _PIECE), buffer.ctypes.data, buffer.nbytes)

    def gather(self, addresses: Addresses, words: int) -> Addresses:
        """Return so many words from each address on, as rows; zeros where they cannot be read."""
        rows = np.zeros((len(addresses), words), np.uint64)
        at, width = 0, 8 * words
        while at < len(addresses):
            pieces = np.zeros(min(_MOST_PIECES, len(addresses) - at), _PIECE)
            pieces["base"], pieces["length"] = addresses[at : at + len(pieces)], width
            done = self._read(pieces, rows.ctypes.data + at * width, len(pieces) * width) // width
            if done < len(pieces):
                rows[at + done] = 0
                done += 1
            at += done
        return rows

    def resident(self, start: int, end: int, *, own_only: bool) -> Iterator[tuple[int, int]]:
        """Yield ranges whose pages were touched. `own_only`: not those that still are a file's."""
        for first in range(start // PAGE, end // PAGE, _PAGEMAP_PAGES):
            count = min(_PAGEMAP_PAGES, end // PAGE - first)
            data = os.pread(self._pagemap, count * _PAGEMAP_ENTRY, first * _PAGEMAP_ENTRY)
            entries = np.frombuffer(data, np.uint64, len(data) // _PAGEMAP_ENTRY)
            there = (entries & (_PRESENT | _SWAPPED)) != 0
            if own_only:
                there &= (entries & _OF_FILE) == 0
            pages = np.flatnonzero(there)
            if len(pages) == 0:
                continue
            breaks = np.flatnonzero(np.diff(pages) > (1 if own_only else _NEAR))
            begins = pages[np.concatenate([[0], breaks + 1])] + first
            ends = pages[np.concatenate([breaks, [len(pages) - 1]])] + first + 1
            yield from zip((begins * PAGE).tolist(), (ends * PAGE).tolist(), strict=True)
