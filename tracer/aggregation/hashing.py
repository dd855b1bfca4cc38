"""Hashes of rows of numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from tracer.model.hashing import Hashes, mixed


def hashed(columns: Iterable[npt.NDArray[Any]], rows: int) -> Hashes:
    """Hash rows, given as columns of unsigned integers."""
    state = np.zeros(rows, dtype=np.uint64)
    for column in columns:
        state = mixed(state ^ column)
    return state
