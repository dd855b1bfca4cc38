"""Fronts of hash maps (bpf/fronts.bpf.h): arrays in which the kernel side looks first, as shared memory."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import numpy.typing as npt

from tracer.kernel.kernel_records import BLOCK_SET
from tracer.kernel.maps import Maps
from tracer.kernel.shared_memory import SharedMemory
from tracer.model import records
from tracer.model.distinct_values import is_in_ordered

_READINGS = 64
_PID, _GENERATION = np.uint64(0xFFFFFFFF), np.uint64(0xFFFF)
"""Of an owner: its low half, and the quarter above."""
_ROW = np.dtype([("key", records.KEY), ("block", records.ALLOCATION)])


def _rows(
    sets: npt.NDArray[np.void], at: npt.NDArray[np.intp], way: npt.NDArray[np.intp]
) -> npt.NDArray[np.uint64]:
    """Return the words of a _ROW for each place."""
    rows = np.empty((len(at), _ROW.itemsize // 8), "<u8")
    rows[:, 0], rows[:, 1] = sets["address"][at, way], sets["owner"][at, way]
    rows[:, 2:] = sets["block"][at, way].view("<u8").reshape(len(at), _ROW.itemsize // 8 - 2)
    return rows


def read_live_front(maps: Maps) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
    """Return the KEYs and ALLOCATIONs of the live blocks in the front.

    Blocks that come or go meanwhile may be in it or not. Each is read twice, until both readings are the same: it may
    have been written meanwhile.
    """
    kept = [np.empty((0, _ROW.itemsize // 8), "<u8")]
    count = maps.entries["LIVE_FRONT"]
    with closing(SharedMemory(maps.fds["LIVE_FRONT"], count * BLOCK_SET.itemsize)) as shared:
        sets = shared.view(BLOCK_SET, count)
        at, way = np.nonzero(sets["address"].copy())  # numpy raises where what it looks at changes meanwhile
        rows = _rows(sets, at, way)
        for _ in range(_READINGS):
            again = _rows(sets, at, way)
            changed = (rows != again).any(axis=1)
            kept.append(rows[~changed])
            at, way, rows = at[changed], way[changed], again[changed]
            if not len(rows):
                break
    return _table(np.concatenate(kept))


def take_from_live_front(
    maps: Maps, spaces: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
    """Remove the blocks of address spaces that have ended, in which nobody makes or frees any more; return their KEYs
    and ALLOCATIONs. `spaces`: their numbers (space_numbers), ascending."""
    count = maps.entries["LIVE_FRONT"]
    with closing(SharedMemory(maps.fds["LIVE_FRONT"], count * BLOCK_SET.itemsize)) as shared:
        sets = shared.view(BLOCK_SET, count)
        at, way = np.nonzero(sets["address"].copy())
        owners = sets["owner"][at, way]
        numbers = (owners & _PID) << np.uint64(16) | owners >> np.uint64(32) & _GENERATION
        chosen = is_in_ordered(numbers, spaces)
        at, way = at[chosen], way[chosen]
        rows = _rows(sets, at, way)
        sets["address"][at, way] = 0  # in this order: from then on the kernel side may write there
        sets["is_taken"][at, way] = 0
    return _table(rows)


def _table(rows: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
    found = rows[rows[:, 0] != 0].view(_ROW)[:, 0]
    return found["key"], found["block"]
