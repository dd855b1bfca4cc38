"""Fronts of hash maps (bpf/fronts.bpf.h): arrays in which the kernel side looks first, as shared memory."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import numpy.typing as npt

from tracer.kernel.kernel_records import BLOCK_SET
from tracer.kernel.maps import Maps
from tracer.kernel.shared_memory import SharedMemory
from tracer.model import records

_READINGS = 64
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
    found = np.concatenate(kept)
    found = found[found[:, 0] != 0].view(_ROW)[:, 0]
    return found["key"], found["block"]
