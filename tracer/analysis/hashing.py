"""Hashes of rows, and of sets of rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracer.analysis.groups import Column, Indices

Hashes = npt.NDArray[np.uint64]


def mixed(*columns: Column) -> Hashes:
    """Hash rows of 64-bit values: the finalizer of splitmix64 (Steele, Lea, Flood 2014), chained."""
    state = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        state = (state ^ column.astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state


def sums(hashes: Hashes, label: Indices, groups: int) -> Hashes:
    """Return the wrapped sum of the hashes of each group; 0 for a group without rows."""
    total = np.zeros(groups, dtype=np.uint64)
    np.add.at(total, label, hashes)
    return total
