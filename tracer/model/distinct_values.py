"""Distinct values of arrays, and those that are one of a few."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the distinct values of an array of integers, ascending, as numpy.unique does: that one imports numpy.ma,
    which takes 25 ms."""
    ordered = np.sort(values, axis=None)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def is_any_of(values: npt.NDArray[Any], few: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Return which values are one of a few, as numpy.isin does, which takes 20 us for any number of them."""
    found: npt.NDArray[np.bool_] = values == few[0]
    for value in few[1:]:
        found |= values == value
    return found


def is_in(values: npt.NDArray[Any], many: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which values are among many, as numpy.isin does for integers of one type, which imports numpy.ma too."""
    return is_in_ordered(values, np.sort(many, axis=None))


def is_in_ordered(values: npt.NDArray[Any], ordered: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which values are among those of an ascending array of the same type."""
    if not len(ordered):
        return np.zeros(values.shape, bool)
    at = np.searchsorted(ordered, values)
    found: npt.NDArray[np.bool_] = ordered[np.minimum(at, len(ordered) - 1)] == values
    return found
