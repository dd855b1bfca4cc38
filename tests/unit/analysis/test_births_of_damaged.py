"""Times that no trace gives."""

from __future__ import annotations

import numpy as np
import pytest

from tracer.analysis.births import births


@pytest.mark.parametrize("time", [(1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_times_beyond_all_numbers_are_in_some_tenth(time: int) -> None:
    times = np.array([0, 5, time], np.uint64)
    (found,) = births(times, np.array([1, 2, 3], np.uint64), np.array([0, 3]), [(0, 10)])
    assert (found.count, sum(found.tenths)) == (3, 3)
