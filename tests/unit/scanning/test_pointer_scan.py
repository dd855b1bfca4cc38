"""Which words point into ranges of addresses, against the same word by word."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.reachability.memory import REGION, WORD, RegionKind
from tracer.scanning.layout import Layout, Range
from tracer.scanning.pointer_scan import PointerScan, TooMuch, _Spans
from tracer.scanning.process_memory import PAGE, ProcessMemory

PLACES = (0x40_0000, 0x1E00_0000, 0x5555_0000_0000, 0x7F00_0000_0000, 0x7FFF_F000_0000)


@given(
    st.lists(st.tuples(st.sampled_from(PLACES), st.integers(0, 3), st.integers(1, 2)), unique_by=lambda r: r[:2]),
    st.lists(st.tuples(st.sampled_from((0, *PLACES)), st.integers(-9, 0x4009), st.sampled_from((0, 7, 0xFFFF)))),
)
@settings(max_examples=300, deadline=None)
def test_words_are_found_as_one_by_one(places: list[tuple[int, int, int]], drawn: list[tuple[int, int, int]]) -> None:
    """Ranges of 0xff0 bytes; words around them, some with tags in the upper bits."""
    ranges = [(base + 0x1000 * n, base + 0x1000 * n + 0xFF0, label) for base, n, label in places]
    words = [max(base + near, 0) | tag << 48 for base, near, tag in drawn]
    expected = []
    for at, word in enumerate(words):
        value = word & (1 << 48) - 1
        expected += [(at, value, label) for start, end, label in ranges if start <= value < end]
    at, values, labels = _Spans(ranges).find(np.array(words, np.uint64))
    assert list(zip(at.tolist(), values.tolist(), labels.tolist(), strict=True)) == expected


@pytest.mark.parametrize(("most_pages", "is_read"), [(None, True), (64, True), (3, True), (2, False), (0, False)])
def test_no_more_is_read_than_is_permitted(most_pages: int | None, is_read: bool) -> None:
    """Of 64 pages three are resident, far from each other; the first has a pointer to the last."""
    with mmap.mmap(-1, 64 * PAGE) as room, closing(ProcessMemory(os.getpid())) as memory:
        word = ctypes.c_uint64.from_buffer(room)
        start = ctypes.addressof(word)
        word.value = start + 63 * PAGE
        for page in (31, 63):
            room[page * PAGE] = 1
        end = start + 64 * PAGE
        plan = Layout((Range(start, end, RegionKind.MAPPING),), ((start, end),), (), ())
        most = None if most_pages is None else most_pages * PAGE
        scan = PointerScan(memory, plan, time.monotonic() + 100, most)
        if is_read:
            words = scan.run(np.zeros(0, WORD), np.zeros(0, REGION)).words
            assert words.tolist() == [(start, start + 63 * PAGE)]
        else:
            with pytest.raises(TooMuch, match=r"^0\.0 MiB of its memory are to be read, more than --max-scan permits$"):
                scan.run(np.zeros(0, WORD), np.zeros(0, REGION))
            assert memory.bytes_read == 0
        del word


def test_registers_may_hold_any_number() -> None:
    """Of -8 the words before it are at the end of all addresses, of 8 they are before the first."""
    with mmap.mmap(-1, PAGE) as room, closing(ProcessMemory(os.getpid())) as memory:
        words = (ctypes.c_uint64 * (PAGE // 8)).from_buffer(room)
        start = ctypes.addressof(words)
        for index in range(4, len(words)):
            words[index] = start + 8 * (index | 1)
        plan = Layout((Range(start, start + PAGE, RegionKind.MAPPING),), ((start, start + PAGE),), (), ())
        registers = np.array([(0, (1 << 64) - 8), (8, 8), (16, 24), (24, (1 << 47) - 8)], WORD)
        read = PointerScan(memory, plan, time.monotonic() + 100).run(registers, np.zeros(0, REGION))
        last = read.heads[read.heads["address"] == start + PAGE - 8]
        assert last["before"].tolist() == [[start + PAGE - 24, start + PAGE - 24, start + PAGE - 8]]
        del words
