"""Pieces of a process's memory, many at once: process_vm_readv(2)."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence

MOST_PIECES = 1024
"""IOV_MAX."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.process_vm_readv.restype = ctypes.c_ssize_t
_libc.process_vm_readv.argtypes = [
    ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong
]  # fmt: skip


def read_pieces(pid: int, into: int, size: int, pieces: bytes | int, count: int) -> int:
    """Read pieces, at most MOST_PIECES, into one range of this process's memory; return how many bytes could be read.
    `pieces`: that many of struct iovec, or their address."""
    return max(int(_libc.process_vm_readv(pid, struct.pack("<2Q", into, size), 1, pieces, count, 0)), 0)


def bytes_at(pid: int, addresses: Sequence[int]) -> bytes | None:
    """Return the byte at each of these addresses; None where one of them could not be read, or there are too many."""
    count = len(addresses)
    if not 0 < count <= MOST_PIECES:
        return b"" if not count else None
    buffer = ctypes.create_string_buffer(count)
    pieces = struct.pack(f"<{2 * count}Q", *(number for address in addresses for number in (address, 1)))
    done = read_pieces(pid, ctypes.addressof(buffer), count, pieces, count)
    return buffer.raw if done == count else None
