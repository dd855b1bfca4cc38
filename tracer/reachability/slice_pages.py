"""Slice pages of GLib: blocks that it cuts into the memory of small structs, up to 2.74.

Nobody points at the start of such a page: programs point at the structs in it, and GLib at what stands behind them,
which links the pages of a size into a ring. Source: glib/gslice.c of 2.74
(allocator_add_slab, SlabInfo, SLAB_INFO_SIZE, NATIVE_MALLOC_PADDING).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracer.model.distinct_values import is_in
from tracer.model.snapshot import Records
from tracer.reachability.block_table import BlockTable, Indices
from tracer.reachability.memory import Addresses

_PADDING, _INFO, _LEAST_PAGE = np.uint64(16), np.uint64(48), np.uint64(128)
_NEXT, _PREVIOUS = np.uint64(16), np.uint64(24)
_ONE = np.uint64(1)


def slice_pages(words: Records, blocks: BlockTable) -> npt.NDArray[np.bool_]:
    """Tell which blocks are such pages: of the right size at the right place, and each in a ring of those of its size.

    `words`: those that point at a block, with their places (`at`) and values.
    """
    found = np.zeros(len(blocks), np.bool_)
    page = blocks.size.astype(np.uint64, copy=False) + _PADDING
    start = blocks.start.astype(np.uint64, copy=False)
    alike = (page >= _LEAST_PAGE) & (page & (page - _ONE) == 0) & (start & (page - _ONE) == 0)
    some: Indices = np.flatnonzero(alike)
    if len(some) == 0:
        return found
    some = some[np.argsort(start[some] + page[some])]  # blocks of a pool lie in others
    info, size = start[some] + page[some] - _INFO, page[some]
    after, before = _values_at(words, info + _NEXT), _values_at(words, info + _PREVIOUS)
    behind, ahead = _index_of(after, info), _index_of(before, info)
    linked = (behind >= 0) & (ahead >= 0)
    linked &= (before[behind] == info) & (after[ahead] == info) & (size[behind] == size) & (size[ahead] == size)
    found[some[linked]] = True
    return found


def _values_at(words: Records, places: Addresses) -> Addresses:
    """Return the word at each place, 0 where there is none. The places ascend."""
    rows = words[is_in(words["at"], places)]
    values = np.zeros(len(places), np.uint64)
    values[np.searchsorted(places, rows["at"])] = rows["value"]
    return values


def _index_of(values: Addresses, ascending: Addresses) -> Indices:
    """Return where each value stands among others, -1: nowhere."""
    index = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    return np.where(ascending[index] == values, index, -1)
