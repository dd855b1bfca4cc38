"""tracer.model.distinct_values: the same as numpy.unique, without what that imports."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracer.model.distinct_values import distinct, is_in


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
