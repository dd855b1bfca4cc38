"""Tests of tracer.procfs.memory, of this process."""

from __future__ import annotations

import ctypes
import mmap
import os

from tracer.procfs.memory import bytes_at


def test_bytes_at_many_places() -> None:
    memory = ctypes.create_string_buffer(bytes(range(256)), 256)
    start = ctypes.addressof(memory)
    assert bytes_at(os.getpid(), [start + 7, start + 200, start]) == bytes([7, 200, 0])
    assert bytes_at(os.getpid(), []) == b""


def test_nothing_where_one_cannot_be_read() -> None:
    memory = ctypes.create_string_buffer(8)
    assert bytes_at(os.getpid(), [ctypes.addressof(memory), 16]) is None
    assert bytes_at(os.getpid(), [ctypes.addressof(memory)] * 1025) is None


def test_a_page_that_the_process_may_not_read() -> None:
    area = mmap.mmap(-1, mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(address), mmap.PAGESIZE, 0) == 0
    assert bytes_at(os.getpid(), [address]) is None
    assert libc.mprotect(ctypes.c_void_p(address), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE) == 0
