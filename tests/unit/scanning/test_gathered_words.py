"""Words that are read from many places of a process, near each other or far apart, against one read of all."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from tracer.scanning.process_memory import PAGE, ProcessMemory

PAGES, HOLE = 64, 40
"""The page that cannot be read."""


@pytest.fixture(name="room")
def _room() -> Iterator[Any]:
    """Give the address of PAGES pages, and a copy of their words."""
    with mmap.mmap(-1, PAGES * PAGE) as room:
        words = np.frombuffer(room, np.uint64)
        words[:] = np.arange(1, len(words) + 1)
        start, copy = words.ctypes.data, words.copy()
        libc = ctypes.CDLL(None)
        assert libc.mprotect(ctypes.c_void_p(start + HOLE * PAGE), PAGE, 0) == 0
        yield start, copy
        assert libc.mprotect(ctypes.c_void_p(start + HOLE * PAGE), PAGE, 3) == 0
        del words


@pytest.mark.parametrize("step", [1, 2, 7, 200, 512, 600])
@pytest.mark.parametrize("width", [1, 3, 20])
@pytest.mark.parametrize("last", [HOLE * PAGE // 8, PAGES * PAGE // 8])
def test_words_are_those_that_are_there(room: Any, step: int, width: int, last: int) -> None:
    """Pieces that reach into the page that cannot be read are zeros, and no others."""
    start, copy = room
    at = np.arange(0, last - width + 1, step)
    expected = copy[at[:, None] + np.arange(width)]
    reaches = (at + width > HOLE * PAGE // 8) & (at < (HOLE + 1) * PAGE // 8)
    expected[reaches] = 0
    with closing(ProcessMemory(os.getpid())) as memory:
        found = memory.gather(np.uint64(start) + at.astype(np.uint64) * np.uint64(8), width)
        assert memory.bytes_read > 0
    assert np.array_equal(found, expected)
    assert memory.gather(np.zeros(0, np.uint64), width).shape == (0, width)
