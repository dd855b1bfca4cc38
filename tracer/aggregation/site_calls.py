"""Calls of described functions, counted by their sites."""

from __future__ import annotations

import numpy as np

from tracer.model.events import EventFlag
from tracer.model.snapshot import Records

_OPERATIONS = 32
"""More than there are: a row of the table is a site and an operation."""


class SiteCalls:
    def __init__(self) -> None:
        self._counts = np.zeros((2, 0), np.int64)

    def add(self, events: Records) -> None:
        """Count EVENTs of counted objects."""
        unknown = (events["flags"] & EventFlag.UNKNOWN != 0) | (events["serial"] == 0)
        places = events["site"].astype(np.int64) * _OPERATIONS + events["operation"]
        for row, chosen in enumerate((places, places[unknown])):
            counts = np.bincount(chosen, minlength=self._counts.shape[1])
            if len(counts) > self._counts.shape[1]:
                self._counts = np.pad(self._counts, ((0, 0), (0, len(counts) - self._counts.shape[1])))
            self._counts[row] += counts

    def of(self, site: int, operation: int) -> tuple[int, int]:
        """Return how many there were, and how many of these were of objects that nothing was seen to create.

        What else a call did, such as to end an object by making another at its place, is no call.
        """
        place = site * _OPERATIONS + operation
        calls, unknown = self._counts[:, place] if place < self._counts.shape[1] else (0, 0)
        return int(calls), int(unknown)
