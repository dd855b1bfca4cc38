"""tracer.model.distinct_values: the same as numpy.unique, without what that imports."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracer.model.distinct_values import distinct


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5)))
def test_the_same_as_numpys(values: list[int]) -> None:
    array = np.array(values, np.uint64)
    found = distinct(array)
    assert found.dtype == array.dtype
    assert found.tolist() == np.unique(array).tolist() == sorted(set(values))


def test_masked_arrays_are_not_imported() -> None:
    script = (
        "import sys, numpy as np; from tracer.model.distinct_values import distinct;"
        "assert distinct(np.array([3, 1, 3])).tolist() == [1, 3]; print('numpy.ma' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "False\n"
