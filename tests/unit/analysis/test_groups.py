"""tracer.analysis.groups: rows of equal keys, against loops over rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.analysis.groups import group_rows, matching_rows

Column = npt.NDArray[Any]
_VALUES = {
    "bool": st.booleans(),
    "uint8": st.integers(0, 255),
    "int8": st.integers(-128, 127),
    "uint32": st.integers(0, 3) | st.integers(0, 2**32 - 1),
    "int32": st.integers(-3, 3) | st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1),
    "uint64": st.integers(0, 3) | st.integers(2**47, 2**47 + 3) | st.integers(0, 2**64 - 1),
}


def _tables(draw: st.DrawFn, lengths: list[int]) -> list[list[Column]]:
    """Draw tables of these lengths, with columns of the same types."""
    types = draw(st.lists(st.sampled_from(sorted(_VALUES)), min_size=1, max_size=4))
    rows = [st.lists(_VALUES[name], min_size=length, max_size=length) for length in lengths for name in types]
    drawn = iter([draw(row) for row in rows])
    return [[np.array(next(drawn), name) for name in types] for _ in lengths]


@st.composite
def one_table(draw: st.DrawFn) -> list[Column]:
    return _tables(draw, [draw(st.integers(0, 30))])[0]


@st.composite
def two_tables(draw: st.DrawFn) -> tuple[list[Column], list[Column]]:
    known, wanted = _tables(draw, [draw(st.integers(0, 20)), draw(st.integers(0, 20))])
    if draw(st.booleans()) and len(known[0]):  # some that are in both
        rows = draw(st.lists(st.integers(0, len(known[0]) - 1), max_size=20))
        wanted = [np.concatenate([other, column[rows]]) for column, other in zip(known, wanted, strict=True)]
    return known, wanted


def _keys(columns: list[Column]) -> list[tuple[Any, ...]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


@given(one_table())
def test_groups_are_numbered_by_their_values(columns: list[Column]) -> None:
    keys = _keys(columns)
    numbers = {key: number for number, key in enumerate(sorted(set(keys)))}
    groups = group_rows(*columns)
    assert groups.label.tolist() == [numbers[key] for key in keys]
    assert groups.first.tolist() == [keys.index(key) for key in sorted(numbers)]


@given(two_tables())
def test_a_row_that_agrees(tables: tuple[list[Column], list[Column]]) -> None:
    known, wanted = (_keys(columns) for columns in tables)
    found = matching_rows(*tables).tolist()
    assert [known[row] if row >= 0 else None for row in found] == [key if key in known else None for key in wanted]


@given(one_table())
def test_each_row_agrees_with_itself(columns: list[Column]) -> None:
    keys = _keys(columns)
    assert [keys[row] for row in matching_rows(columns, columns)] == keys


@pytest.mark.parametrize("count", [1, 5_000, 200_000])
def test_many_rows(count: int) -> None:
    random = np.random.default_rng(count)
    columns = [random.integers(0, 3, count), random.integers(0, 2**63, count), random.integers(0, 1000, count)]
    columns[1] = columns[1][random.integers(0, count, count)]
    _, first, label = np.unique(np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True)
    groups = group_rows(*columns)
    assert np.array_equal(groups.label, label.ravel())
    assert np.array_equal(groups.first, first)
    order = random.permutation(count)
    shuffled = [column[order] for column in columns]
    found = matching_rows(columns, shuffled)
    assert all(np.array_equal(column[found], other) for column, other in zip(columns, shuffled, strict=True))


@pytest.mark.parametrize("bits", [3, 20, 46, 48, 62])
def test_keys_of_wide_columns_do_not_overflow(bits: int) -> None:
    random = np.random.default_rng(bits)
    values = random.integers(0, 2**bits, 3_000).astype(np.uint64)
    columns = [random.choice(values, 20_000) for _ in range(3)]
    wanted = [np.where(random.random(20_000) < 0.9, column, column + np.uint64(1)) for column in columns]
    known = set(_keys(columns))
    found = matching_rows(columns, wanted)
    assert (found >= 0).tolist() == [key in known for key in _keys(wanted)]
    rows = np.flatnonzero(found >= 0)
    assert all(np.array_equal(column[found[rows]], other[rows]) for column, other in zip(columns, wanted, strict=True))
