"""numpy dtypes of the bulk records; they mirror bpf/abi.h, and a unit test compares the two."""

from __future__ import annotations

from enum import IntEnum, IntFlag

import numpy as np

MAX_FRAMES = 127
MAX_SITES = 4096
NAME_BYTES = 64
PATH_BYTES = 256
FRAME_BINARY_SHIFT = 48
FRAME_EXACT = 1 << 47
"""Set in a frame key whose address is the very instruction, not the one after a call."""
FRAME_ADDRESS_MASK = FRAME_EXACT - 1
TABLE_MAPPINGS = 1024
TABLES = 256
TABLE_SHARED = 1 << 31
RULES = 16384

LOCATION = np.dtype(
    [("kind", "u1"), ("reg", "u1"), ("dereference", "u1"), ("width", "u1"), ("offset", "<i4"), ("adjust", "<i4")]
)
SITE = np.dtype(
    [
        ("operation", "u1"), ("failure", "u1"), ("flags", "<u2"), ("group", "<u2"), ("return_distance", "<u2"),
        ("type", "<u8"),
        ("object", LOCATION), ("counter", LOCATION), ("count", LOCATION),
        ("size", LOCATION), ("name", LOCATION), ("holder", LOCATION),
    ],
    align=True,
)
KEY = np.dtype([("address", "<u8"), ("pid", "<u4"), ("generation", "<u2"), ("group", "<u2")], align=True)
ALLOCATION = np.dtype(
    [
        ("size", "<u8"), ("time_ns", "<u8"), ("stack", "<u8"),
        ("tid", "<u4"), ("site", "<u2"), ("flags", "<u2"),
    ],
    align=True,
)
OBJECT = np.dtype(
    [
        ("object", "<u8"), ("type", "<u8"), ("time_ns", "<u8"), ("stack", "<u8"),
        ("count", "<i8"), ("gets", "<u8"), ("puts", "<u8"),
        ("tid", "<u4"), ("serial", "<u4"), ("initial", "<i4"), ("count_read", "<i4"), ("drift", "<i4"),
        ("site", "<u2"), ("flags", "<u2"),
    ],
    align=True,
)
RELEASED = np.dtype(
    [
        ("type", "<u8"), ("birth", "<u8"), ("release", "<u8"), ("time_ns", "<u8"),
        ("serial", "<u4"), ("by_delete", "<u2"), ("revived", "<u2"),
    ],
    align=True,
)
EVENT = np.dtype(
    [
        ("time_ns", "<u8"), ("address", "<u8"), ("object", "<u8"), ("stack", "<u8"), ("value", "<u8"), ("extra", "<u8"),
        ("pid", "<u4"), ("tid", "<u4"), ("generation", "<u2"), ("group", "<u2"), ("site", "<u2"),
        ("operation", "u1"), ("flags", "u1"),
        ("count_read", "<i4"), ("count", "<i4"), ("serial", "<u4"), ("reserved", "<u4"),
    ],
    align=True,
)
STACK = np.dtype([("id", "<u8"), ("status", "<u4"), ("depth", "<u4"), ("frames", "<u8", (MAX_FRAMES + 1,))], align=True)
STACK_TOTALS = np.dtype(
    [
        ("made", "<u8"), ("made_bytes", "<u8"), ("freed", "<u8"), ("freed_bytes", "<u8"),
        ("life_ns", "<u8"), ("life_min_ns", "<u8"), ("life_max_ns", "<u8"),
    ]
)
TYPE_NAME = np.dtype(
    [("pointer", "<u8"), ("pid", "<u4"), ("generation", "<u2"), ("unread", "<u2"), ("name", f"S{NAME_BYTES}")],
    align=True,
)
CONTROL = np.dtype(
    [
        ("time_ns", "<u8"), ("address", "<u8"), ("length", "<u8"), ("ticket", "<u8"),
        ("pid", "<u4"), ("tid", "<u4"), ("parent", "<u4"), ("generation", "<u2"), ("kind", "<u2"),
        ("path", f"S{PATH_BYTES}"),
    ],
    align=True,
)
PROCESS = np.dtype(
    [
        ("started_ns", "<u8"), ("forked_ns", "<u8"), ("parent", "<u4"), ("space", "<u4"),
        ("generation", "<u2"), ("own_generation", "<u2"), ("state", "<u2"), ("reserved", "<u2"),
    ],
    align=True,
)
SPACE_TOTALS = np.dtype(
    [
        ("made", "<u8"), ("made_bytes", "<u8"), ("freed", "<u8"), ("freed_bytes", "<u8"),
        ("unknown_frees", "<u8"), ("events", "<u8"),
    ]
)
GHOST = np.dtype([("allocation", ALLOCATION), ("freed_ns", "<u8")], align=True)
COUNTERS = np.dtype([("counter", "<u8", (4,))])
MAPPING = np.dtype(
    [
        ("start", "<u8"), ("end", "<u8"), ("bias", "<u8"),
        ("first_page", "<u4"), ("page_count", "<u4"), ("first_link_page", "<u4"), ("binary", "<u4"),
    ],
    align=True,
)
TABLE = np.dtype([("count", "<u4"), ("reserved", "<u4"), ("mappings", MAPPING, (TABLE_MAPPINGS,))], align=True)
RULE = np.dtype([("kind", "u1"), ("rbp_saved", "u1"), ("rbp_offset", "<i2"), ("offset", "<i4")], align=True)
HOLD_SLOTS = 1024
SHARED = np.dtype(
    [("armed", "<u8"), ("epoch", "<u8"), ("published", "<u8"), ("follow", "<u8"), ("released", "<u8", (HOLD_SLOTS,))]
)

ALLOCATION_RECORD = np.dtype(KEY.descr + ALLOCATION.descr)
"""A live allocation with its key: what a walk of the live map gives."""
OBJECT_RECORD = np.dtype(KEY.descr + OBJECT.descr)
"""A live object with its key."""
TOTALS_RECORD = np.dtype([("stack", "<u8"), *STACK_TOTALS.descr])
"""Totals of one allocation stack."""
MAPPED_RECORD = np.dtype(
    [
        ("start", "<u8"), ("length", "<u8"), ("time_ns", "<u8"), ("stack", "<u8"),
        ("pid", "<u4"), ("tid", "<u4"), ("generation", "<u2"), ("site", "<u2"), ("flags", "<u4"),
    ]
)
"""A live piece of memory that the target mapped itself (mmap, mremap)."""


class MappedFlag(IntFlag):
    """What `flags` of a MAPPED_RECORD says beside mmap's own flags.

    Takes the place of the size of huge pages (bits 26 to 31 of mmap's flags, MAP_HUGE_SHIFT in
    include/uapi/asm-generic/hugetlb_encode.h).
    """

    INHERITED = 1 << 31


class ErrorKind(IntEnum):
    NONE = 0
    OVER_PUT = 1
    USE_AFTER_ZERO = 2
    DELETE_WHILE_REFERENCED = 3
    REINITIALISED = 4


class EventFlag(IntFlag):
    LAST = 1
    UNKNOWN = 2
    COUNT_UNREAD = 4


class ObjectFlag(IntFlag):
    COUNT_UNREAD = 1
    THREADS = 2
    ENDING = 4
    FOLLOWS = 8


class StackStatus(IntEnum):
    COMPLETE = 0
    TRUNCATED = 1
    NO_TABLE = 2
    FAULT = 3
    UNSUPPORTED = 4
    FRAME_POINTER = 5


class ControlKind(IntEnum):
    NONE = 0
    FORK = 1
    EXEC = 2
    EXIT = 3
    LOADER = 4
    FORKED = 5
    EXECUTES = 6
    MAPPED = 7
    UNMAPPED = 8
    STARTED = 9
    EXECUTES_AT = 10
    FORKS = 11


class RuleKind(IntEnum):
    NONE = 0
    RSP = 1
    RBP = 2
    PLT = 3
    END = 4
    DEREFERENCE = 5
    SIGNAL = 6
    UNSUPPORTED = 7
    REALIGNED = 8


class LossKind(IntEnum):
    LIVE_FULL = 0
    OBJECTS_FULL = 1
    EVENTS_FULL = 2
    STACKS_FULL = 3
    TOTALS_FULL = 4
    PENDING_FULL = 5
    PENDING_STALE = 6
    THREADS_FULL = 7
    PROCESSES_FULL = 8
    CONTROL_FULL = 9
    HOLD_EXPIRED = 10
    TYPES_FULL = 11
    UNWIND_REFUSED = 12
    ARGUMENT_UNREAD = 13


class ProcessState(IntEnum):
    WAITS = 0
    TRACED = 1
    ENDED = 2
