"""What objects that ended, and busy objects, went through: counts instead of events."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Records = npt.NDArray[np.void]

NEVER_PUT = np.uint64(2**64 - 1)
"""`put_stack` of the gets that had no put when their object ended all the same."""

PAIR = np.dtype(
    [("type", "<u8"), ("get_stack", "<u8"), ("put_stack", "<u8"), ("count", "<u8"), ("exact", "<u8")]
)
"""References of ended objects, by where they were taken and given back.

`exact`: how many of `count` are paired by holder, the others by order. A reference that the create
gave stands with the create's stack as `get_stack`. The sums per get stack and per put stack are exact."""
DEATH = np.dtype([("type", "<u8"), ("create_stack", "<u8"), ("last_stack", "<u8"), ("count", "<u8")])
"""Ended objects, by where they were created and where the operation stood that ended them."""
LIFETIME = np.dtype(
    [
        ("type", "<u8"), ("create_stack", "<u8"), ("count", "<u8"),
        ("sum_ns", "<u8"), ("min_ns", "<u8"), ("max_ns", "<u8"),
    ]
)
"""How long ended objects lived, by where they were created."""
LIFE_BIN = np.dtype([("stack", "<u8"), ("type", "<u8"), ("count", "<u8"), ("bin", "<u4")])
"""How many that were made at a stack lived so long: bin 0 below 2**LIFE_SHIFT ns, each other one twice as long.

LIFE_SHIFT and the number of bins: tracer.model.records. `type` is 0 for blocks. Bins that are empty have no row."""
CHECKPOINT_TOTALS = np.dtype(
    [
        ("stack", "<u8"), ("type", "<u8"), ("made", "<u8"), ("freed", "<u8"), ("checkpoint", "<u4"), ("site", "<u4"),
    ]
)
"""What had been made at a stack and freed again when a checkpoint was taken.

`type` is 0 for blocks, which have a `site`; stacks that had made nothing have no row."""
STEP = np.dtype(
    [
        ("course", "<u4"), ("count", "<i4"), ("type", "<u8"), ("stack", "<u8"), ("objects", "<u8"),
        ("operation", "u1"),
    ]
)
"""One operation of a course: what an ended object went through from its create to its end.

The rows of one `course` stand together and in order of time. `objects`: how many went through the same
course. `count`: of a create the first count. Which courses are kept is a bounded sample."""
CONDENSED = np.dtype(
    [
        ("address", "<u8"), ("pid", "<u4"), ("generation", "<u2"), ("group", "<u2"), ("serial", "<u4"),
        ("get_stack", "<u8"), ("put_stack", "<u8"), ("count", "<u8"), ("exact", "<u8"),
    ],
    align=True,
)
"""Pairs taken out of the history of a live object: identity as in its EVENTs, rest as in PAIR.

The pairs are by order where `exact` falls short of `count`; the sums per get stack and per put stack
are exact in any case."""


@dataclass(frozen=True)
class BalancedStatistics:
    """Arrays of dtype PAIR, DEATH, LIFETIME and LIFE_BIN, each with distinct keys in order of the keys; and of STEP."""

    pairs: Records = field(default_factory=lambda: np.zeros(0, dtype=PAIR))
    deaths: Records = field(default_factory=lambda: np.zeros(0, dtype=DEATH))
    lifetimes: Records = field(default_factory=lambda: np.zeros(0, dtype=LIFETIME))
    courses: Records = field(default_factory=lambda: np.zeros(0, dtype=STEP))
    lives: Records = field(default_factory=lambda: np.zeros(0, dtype=LIFE_BIN))
