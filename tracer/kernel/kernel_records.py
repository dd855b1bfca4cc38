"""numpy dtypes of what the kernel side keeps for its own use, and Python reads all the same (bpf/abi.h)."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from tracer.model import records


class OldBlock(IntEnum):
    """What a realloc found of the block that it was given."""

    NONE = 0
    TAKEN = 1
    UNKNOWN = 2


class UnknownFrees(IntEnum):
    """What the free of an unknown address is."""

    ARE_COUNTED = 0
    ARE_BAD = 1
    MAY_BE_OLDER = 2


PENDING = np.dtype(
    [
        ("slot", "<u8"), ("address", "<u8"), ("size", "<u8"), ("extra", "<u8"), ("site", "<u8"), ("had_old", "<u8"),
        ("back", "<u8"), ("old", records.ALLOCATION),
    ]
)
UNKNOWN_FREE = np.dtype(
    [
        ("address", "<u8"), ("slot", "<u8"), ("back", "<u8"), ("time_ns", "<u8"), ("on_stack", "<u8"), ("site", "<u8"),
    ]
)
THREAD_HEAD = np.dtype(
    [
        ("unread", "<u8", (3,)), ("pid", "<u4"), ("generation", "<u2"), ("traced", "<u2"), ("table", "<u4"),
        ("tid", "<u4"), ("totals", records.SPACE_TOTALS), ("unread_draws", "<u8", (3,)), ("is_copy", "<u8"),
        ("pending", PENDING), ("unknown_free", UNKNOWN_FREE),
    ]
)
FREED_WAYS = 4
FREED_PLACE = np.dtype(
    [("pid", "<u4"), ("generation", "<u2"), ("group", "<u2"), ("stack", "<u8"), ("size", "<u8"), ("release", "<u8")]
)
FREED_SET = np.dtype(
    [
        ("address", "<u8", (FREED_WAYS,)), ("time_ns", "<u8", (FREED_WAYS,)), ("block", FREED_PLACE, (FREED_WAYS,)),
    ]
)
BLOCK_WAYS = 4
BLOCK_SET = np.dtype(
    [
        ("address", "<u8", (BLOCK_WAYS,)), ("owner", "<u8", (BLOCK_WAYS,)),
        ("is_taken", "<u8", (BLOCK_WAYS,)), ("is_spilled", "<u8"), ("block", records.ALLOCATION, (BLOCK_WAYS,)),
    ]
)
HOLD = np.dtype([(name, "<u8") for name in ("ticket", "code", "no_flags", "rescheduled_ns", "turned_ns", "silent_ns")])
