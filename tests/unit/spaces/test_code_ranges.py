"""The two ranges that hold all code of a mapping table."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracer.model import records
from tracer.model.records import MAPPING
from tracer.spaces.mapping_tables import TABLE_HEAD, code_ranges


def mappings(*places: tuple[int, int]) -> np.ndarray:
    rows = np.zeros(len(places), MAPPING)
    for row, (start, end) in zip(rows, places, strict=True):
        row["start"], row["end"] = start, end
    return rows


def test_a_program_and_its_libraries() -> None:
    found = code_ranges(mappings((0x5500, 0x5600), (0x7F00, 0x7F10), (0x7F40, 0x7F90)))
    assert found.tolist() == [[0x5500, 0x5600], [0x7F00, 0x7F90]]


def test_one_mapping_and_none() -> None:
    assert code_ranges(mappings((0x5500, 0x5600))).tolist() == [[0x5500, 0x5600]]
    assert code_ranges(mappings()).tolist() == []


@given(st.lists(st.integers(0, 1 << 46), min_size=2, max_size=40, unique=True).filter(lambda n: len(n) % 2 == 0))
def test_no_mapping_is_outside(edges: list[int]) -> None:
    ordered = sorted(edges)
    places = list(zip(ordered[::2], ordered[1::2], strict=True))
    ranges = code_ranges(mappings(*places)).tolist()
    assert len(ranges) <= 2
    assert all(any(low <= start and end <= high for low, high in ranges) for start, end in places)


def test_a_table_begins_with_its_head() -> None:
    table = np.zeros(1, records.TABLE)
    table["count"], table["anonymous"], table["identity"], table["code"]["end"] = 1, 2, 3, (4, 5)
    head = np.frombuffer(table.tobytes(), TABLE_HEAD, 1)[0]
    assert (head["count"], head["anonymous"], head["identity"], head["code"]["end"].tolist()) == (1, 2, 3, [4, 5])
    table["mappings"]["start"][0, 0] = 6
    assert table.tobytes()[TABLE_HEAD.itemsize] == 6
