"""Memory that is shared with the kernel: arrays of it outlive it, and then are no longer shared."""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
)  # fmt: skip
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_MAP_FIXED = 0x10
_FAILED = ctypes.c_void_p(-1).value


def _mmap(address: int, size: int, flags: int, fd: int) -> int:
    found: int = _libc.mmap(address, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, fd, 0)
    if found == _FAILED:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found


class SharedMemory:
    """A descriptor's first bytes, mapped. Python's mmap keeps a descriptor of its own open until the last array that
    looks at it is gone, and cannot be closed before."""

    def __init__(self, fd: int, size_bytes: int) -> None:
        """`size_bytes` is rounded up to whole pages."""
        self.size_bytes = size_bytes + mmap.PAGESIZE - 1 & -mmap.PAGESIZE
        self._address = _mmap(0, self.size_bytes, mmap.MAP_SHARED, fd)
        self._bytes = (ctypes.c_char * self.size_bytes).from_address(self._address)
        weakref.finalize(self._bytes, _libc.munmap, self._address, self.size_bytes)

    def view(self, dtype: npt.DTypeLike, count: int) -> npt.NDArray[Any]:
        """Return its first `count` records as a writable array."""
        return np.frombuffer(memoryview(self._bytes), dtype, count)

    def close(self) -> None:
        """Let go of what is shared: zeros of this process's own take its place, for arrays that are still looked at."""
        _mmap(self._address, self.size_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED, -1)
