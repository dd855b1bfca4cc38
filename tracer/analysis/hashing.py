"""Hashes of rows, and of sets of rows."""

from __future__ import annotations

import numpy as np

from tracer.analysis.groups import Column, Indices
from tracer.model import hashing
from tracer.model.hashing import Hashes


def mixed(*columns: Column) -> Hashes:
    """Hash rows of 64-bit values, column by column."""
    state: Hashes = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        state = hashing.mixed(state ^ column.astype(np.uint64))
    return state


def sums(hashes: Hashes, label: Indices, groups: int) -> Hashes:
    """Return the wrapped sum of the hashes of each group; 0 for a group without rows."""
    total = np.zeros(groups, dtype=np.uint64)
    np.add.at(total, label, hashes)
    return total
