"""tracer.model.distinct_values: the same as numpy.unique, without what that imports."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.model.distinct_values import distinct, first_rows, is_in


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5)))
def test_the_same_as_numpys(values: list[int]) -> None:
    array = np.array(values, np.uint64)
    found = distinct(array)
    assert found.dtype == array.dtype
    assert found.tolist() == np.unique(array).tolist() == sorted(set(values))


_WORDS = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5))


@given(_WORDS, _WORDS)
def test_those_among_many_are_numpys(values: list[int], many: list[int]) -> None:
    one, other = np.array(values, np.uint64), np.array(many, np.uint64)
    assert is_in(one, other).tolist() == np.isin(one, other).tolist() == [value in set(many) for value in values]


def test_masked_arrays_are_not_imported() -> None:
    script = (
        "import sys, numpy as np; from tracer.model.distinct_values import distinct, is_in; many = np.arange(99);"
        "assert distinct(many[many < 2]).tolist() == [0, 1] and is_in(many, many).all();"
        "print('numpy.ma' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize("at_once", [1, 7, 100, 1000])
@pytest.mark.parametrize("many", [1, 7, 400, 4_000_000], ids=["one", "few", "some", "one-each"])
@pytest.mark.parametrize("count", [0, 1, 100, 777])
def test_first_rows_are_numpys(count: int, many: int, at_once: int) -> None:
    values = np.random.default_rng(count + many).integers(0, many, count).astype(np.uint64)
    _, rows, counts = np.unique(values, return_index=True, return_counts=True)
    parts = [slice(at, at + at_once) for at in range(0, count, at_once)]
    found = first_rows((np.arange(count)[part], values[part]) for part in parts)
    assert np.array_equal(found.rows, rows)
    assert np.array_equal(found.counts, counts)
