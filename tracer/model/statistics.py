"""Statistics of objects that ended, and of busy objects: counts instead of events."""

from __future__ import annotations

from dataclasses import field

import numpy as np
import numpy.typing as npt

from tracer.late_dataclasses import dataclass
from tracer.model.columns import Column, table

Records = npt.NDArray[np.void]
KEY, STACK, TYPE, SUM = Column.KEY, Column.STACK, Column.TYPE, Column.SUM

NEVER_PUT = np.uint64(2**64 - 1)
"""`put_stack` of the gets that had no put when their object ended all the same."""

PAIR = table(
    ("type", "<u8", TYPE), ("get_stack", "<u8", STACK), ("put_stack", "<u8", STACK),
    ("count", "<u8", SUM), ("exact", "<u8", SUM),
)  # fmt: skip
"""References of ended objects, by where they were taken and given back.

`exact`: how many of `count` are paired by holder, the others by order. A reference that the create
gave stands with the create's stack as `get_stack`. The sums per get stack and per put stack are exact."""
DEATH = table(
    ("type", "<u8", TYPE), ("create_stack", "<u8", STACK), ("last_stack", "<u8", STACK), ("count", "<u8", SUM)
)  # fmt: skip
"""Ended objects, by where they were created and where the operation stood that ended them."""
LIFETIME = table(
    ("type", "<u8", TYPE), ("create_stack", "<u8", STACK), ("count", "<u8", SUM),
    ("sum_ns", "<u8", SUM), ("min_ns", "<u8", Column.MINIMUM), ("max_ns", "<u8", Column.MAXIMUM),
)  # fmt: skip
"""How long ended objects lived, by where they were created."""
LIFE_BIN = table(("stack", "<u8", STACK), ("type", "<u8", TYPE), ("count", "<u8", SUM), ("bin", "<u4", KEY))
"""How many that were made at a stack lived so long: bin 0 below 2**LIFE_SHIFT ns, each other one twice as long.

LIFE_SHIFT and the number of bins: tracer.model.records. `type` is 0 for blocks. Bins that are empty have no row."""
HEAP_POINT = table(
    ("time_ns", "<u8", KEY), ("live", "<u8", Column.ANY), ("live_bytes", "<u8", Column.ANY),
    ("made", "<u8", Column.ANY), ("made_bytes", "<u8", Column.ANY),
)  # fmt: skip
"""What the processes that lived at a time of the trace had of blocks, and what all had made until then."""
CHECKPOINT_TOTALS = table(
    ("stack", "<u8", STACK), ("type", "<u8", TYPE), ("made", "<u8", SUM), ("freed", "<u8", SUM),
    ("checkpoint", "<u4", KEY), ("site", "<u4", Column.ANY),
)  # fmt: skip
"""What had been made at a stack and freed again when a checkpoint was taken.

`type` is 0 for blocks, which have a `site`; stacks that had made nothing have no row."""
STEP = table(
    ("course", "<u4", KEY), ("count", "<i4", Column.ANY), ("type", "<u8", TYPE), ("stack", "<u8", STACK),
    ("objects", "<u8", Column.ANY), ("operation", "u1", Column.ANY),
)  # fmt: skip
"""One operation of a course: what an ended object went through from its create to its end.

The rows of one `course` stand together and in order of time. `objects`: how many went through the same
course. `count`: of a create the first count. Which courses are kept is a bounded sample."""
CONDENSED = table(
    ("address", "<u8", KEY), ("pid", "<u4", KEY), ("generation", "<u2", KEY), ("group", "<u2", KEY),
    ("serial", "<u4", KEY), ("get_stack", "<u8", STACK), ("put_stack", "<u8", STACK),
    ("count", "<u8", SUM), ("exact", "<u8", SUM),
    align=True,
)  # fmt: skip
"""Pairs taken out of the history of a live object: identity as in its EVENTs, rest as in PAIR.

The pairs are by order where `exact` falls short of `count`; the sums per get stack and per put stack
are exact in any case."""

FREED_HOLDER = table(
    ("address", "<u8", KEY), ("pid", "<u4", KEY), ("generation", "<u2", KEY), ("group", "<u2", KEY),
    ("serial", "<u4", KEY), ("offset", "<u4", KEY), ("size", "<u8", KEY), ("type", "<u8", TYPE),
    ("made", "<u8", STACK), ("freed", "<u8", STACK), ("put", "<u8", STACK), ("count", "<u8", SUM),
    align=True,
)  # fmt: skip
"""Blocks that were freed while a pointer to a living counted object stood in them.

`address` to `serial`: of an object that is left its identity as in its EVENTs, all 0 for those that ended since.
`offset`, `size`: bytes, of the pointer in the block and of that. `made`, `freed`: stacks of the block. `put`: the stack
of the last put of the object before that by the same thread, NEVER_PUT for none."""


@dataclass(frozen=True)
class BalancedStatistics:
    """Arrays of dtype PAIR, DEATH, LIFETIME and LIFE_BIN, each with distinct keys in order of the keys; and of STEP."""

    pairs: Records = field(default_factory=lambda: np.zeros(0, dtype=PAIR))
    deaths: Records = field(default_factory=lambda: np.zeros(0, dtype=DEATH))
    lifetimes: Records = field(default_factory=lambda: np.zeros(0, dtype=LIFETIME))
    courses: Records = field(default_factory=lambda: np.zeros(0, dtype=STEP))
    lives: Records = field(default_factory=lambda: np.zeros(0, dtype=LIFE_BIN))
