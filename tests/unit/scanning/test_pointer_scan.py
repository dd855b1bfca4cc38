"""Which words point into ranges of addresses, against the same word by word."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.scanning.pointer_scan import _Spans

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
