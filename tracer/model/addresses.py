"""Address spaces and ranges in them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Space = tuple[int, int]
"""(pid, generation): an address space, from its start or last exec on."""
Range = tuple[int, int]
"""Addresses [start, end)."""
ReadMemory = Callable[[int, int], bytes | None]
"""Reads (address, size) of a process, or less; None where there is no memory."""


def space_number(space: Space) -> int:
    """Return one number for an address space."""
    return space[0] << 16 | space[1]


def space_numbers(rows: npt.NDArray[np.void]) -> npt.NDArray[np.uint64]:
    """Return the number of each row's address space, by its `pid` and `generation`."""
    return rows["pid"].astype(np.uint64) << np.uint64(16) | rows["generation"].astype(np.uint64)
