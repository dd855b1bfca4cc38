"""Single bytes of a process's memory, many at once: process_vm_readv(2)."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence

_MOST_PIECES = 1024
"""IOV_MAX."""

_libc = ctypes.CDLL(None, use_errno=True)
_read = _libc.process_vm_readv
_read.restype = ctypes.c_ssize_t
_read.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_ulong]


def bytes_at(pid: int, addresses: Sequence[int]) -> bytes | None:
    """Return the byte at each of these addresses; None where one of them could not be read, or there are too many."""
    count = len(addresses)
    if not 0 < count <= _MOST_PIECES:
        return b"" if not count else None
    buffer = ctypes.create_string_buffer(count)
    pieces = struct.pack(f"<{2 * count}Q", *(number for address in addresses for number in (address, 1)))
    done = _read(pid, struct.pack("<2Q", ctypes.addressof(buffer), count), 1, pieces, count, 0)
    return buffer.raw if done == count else None
