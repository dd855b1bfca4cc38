"""numpy dtypes of the bulk records; they mirror bpf/abi.h, and a unit test compares the two."""

from __future__ import annotations

from enum import IntEnum, IntFlag

import numpy as np

from tracer.model.columns import Column, declare

MAX_FRAMES = 127
MAX_SITES = 4096
NAME_BYTES = 64
PATH_BYTES = 256
LIFE_BINS = 32
LIFE_SHIFT = 12
"""The first bin of lives ends at 2**LIFE_SHIFT ns."""
FRAME_BINARY_SHIFT = 48
FRAME_EXACT = 1 << 47
"""Set in a frame key whose address is the very instruction, not the one after a call."""
FRAME_ADDRESS_MASK = FRAME_EXACT - 1
SCRIPT_BINARY = 0xFFFF
"""In place of a binary's id: the rest of the frame key is an index into Snapshot.script_frames."""
TABLE_MAPPINGS = 1024
TABLES = 256
TABLE_SHARED = 1 << 31
RULES = 16384
DUMP_PAGES = 5
PAGE_WORDS = 512
DUMP_WORDS = DUMP_PAGES * PAGE_WORDS
DUMPS_OF_A_CUT = 1024
DUMPS_FUTILE = 1 << 32
STACK_REACH = 1 << 23
CODE_RANGES = 2
RETURN_INSTANCES = 16

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
        ("tid", "<u4"), ("site", "<u2"), ("alignment", "<u2"),
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
STACK = np.dtype([("id", "<u8"), ("status", "<u4"), ("depth", "<u4"), ("frames", "<u8", (MAX_FRAMES + 1,))], align=True)
CODE_RANGE = np.dtype([("start", "<u8"), ("end", "<u8")])
RETURN_INSTANCE = np.dtype([("slot", "<u8"), ("address", "<u8")])
STACK_REQUEST = np.dtype([("ticket", "<u8"), ("pid", "<u4"), ("tid", "<u4")])
STACK_WORDS_MAX = 64
STACK_WORDS = np.dtype([("count", "<u8"), ("word", RETURN_INSTANCE, (STACK_WORDS_MAX,))])
STACK_DUMP = np.dtype(
    [
        ("id", "<u8"), ("cut", "<u8"), ("start", "<u8"), ("ip", "<u8"), ("registers", "<u8", (16,)),
        ("pid", "<u4"), ("generation", "<u2"), ("pages", "<u2"),
        ("code", CODE_RANGE, (CODE_RANGES,)), ("pending", RETURN_INSTANCE, (RETURN_INSTANCES,)),
        ("words", "<u8", (DUMP_WORDS,)),
    ],
    align=True,
)
STACK_TOTALS = np.dtype(
    [
        ("made", "<u8"), ("made_bytes", "<u8"), ("freed", "<u8"), ("freed_bytes", "<u8"),
        ("life_ns", "<u8"), ("life_min_ns", "<u8"), ("life_max_ns", "<u8"),
        ("peak", "<u8"), ("level", "<u8"), ("risen", "<u8"), ("site", "<u4"), ("callers", "<u4"),
        ("lives", "<u4", (LIFE_BINS,)),
    ]
)
FREE_SITE = np.dtype([("made", "<u8"), ("freed", "<u8"), ("given", "<u8"), ("called", "<u8")])
FREE_SEEN = np.dtype(
    [
        ("count", "<u8"), ("address", "<u8"), ("size", "<u8"), ("argument", "<u8"),
        ("pid", "<u4"), ("generation", "<u2"), ("site", "<u2"), ("alignment", "<u8"),
        ("path", "<u8"),
    ]
)
TYPE_NAME = np.dtype(
    [
        ("pointer", "<u8"), ("otherwise", "<u8"), ("pid", "<u4"), ("generation", "<u2"), ("source", "<u2"),
        ("name", f"S{NAME_BYTES}"),
    ],
    align=True,
)
HELD_REGISTERS = 21
CONTROL_FORK = np.dtype([("parent", "<u4"), ("parent_generation", "<u2"), ("shares_memory", "<u2")])
CONTROL_RANGE = np.dtype([("start", "<u8"), ("length", "<u8")])
CONTROL_ENDING = np.dtype([("thread", "<u8"), ("registers", "<u8", (HELD_REGISTERS,))])
CONTROL = np.dtype({
    "names": [
        "time_ns", "ticket", "pid", "tid", "generation", "kind", "thread",
        "fork", "path", "wait_status", "range", "descriptor", "frames", "ending",
    ],
    "formats": [
        "<u8", "<u8", "<u4", "<u4", "<u2", "<u2", "<u4",
        CONTROL_FORK, f"S{PATH_BYTES}", "<u8", CONTROL_RANGE, "<u8", "<u8", CONTROL_ENDING,
    ],
    "offsets": [0, 8, 16, 20, 24, 26, 28, *[32] * 7],
    "itemsize": 32 + PATH_BYTES,
})  # fmt: skip
"""Those from `fork` on share one place: the kind tells which is there."""
PROCESS = np.dtype(
    [
        ("started_ns", "<u8"), ("forked_ns", "<u8"), ("parent", "<u4"), ("space", "<u4"),
        ("generation", "<u2"), ("own_generation", "<u2"), ("state", "<u2"), ("is_copy", "<u2"),
        ("source", "<u4"), ("source_generation", "<u4"), ("is_preloaded", "<u4"), ("first_ended", "<u4"),
        ("alone_ns", "<u8"),
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
GHOST_KEY = np.dtype([("key", KEY), ("time_ns", "<u8")], align=True)
COUNTERS = np.dtype([("counter", "<u8", (4,))])
MAPPING = np.dtype(
    [
        ("start", "<u8"), ("end", "<u8"), ("bias", "<u8"),
        ("first_page", "<u4"), ("page_count", "<u4"), ("first_link_page", "<u4"), ("binary", "<u4"),
    ],
    align=True,
)
TABLE = np.dtype(
    [
        ("count", "<u4"), ("anonymous", "<u4"), ("identity", "<u8"), ("code", CODE_RANGE, (CODE_RANGES,)),
        ("mappings", MAPPING, (TABLE_MAPPINGS,)),
    ],
    align=True,
)
RULE = np.dtype([("kind", "u1"), ("fp_saved", "u1"), ("fp_offset", "<i2"), ("offset", "<i4")], align=True)
PYTHON = np.dtype(
    [
        ("runtime", "<u8"), ("code_type", "<u8"),
        *(
            (name, "<u2")
            for name in (
                "interpreters", "next_interpreter", "threads", "next_thread", "thread_id", "current",
                "c_frame", "c_frame_current", "c_frame_previous", "code", "previous", "instruction",
                "mark", "mark_value", "mark_is_frame", "first_instruction", "first_line", "file", "name",
                "line_table", "by_content", "ascii_text", "wide_text", "ends_seen",
            )
        ),
    ],
    align=True,
)
LUA = np.dtype(
    [
        *(
            (name, "<u2")
            for name in (
                "status", "call", "base_call", "saved_pc", "call_size", "function", "previous", "call_pc", "proto",
                "is_c", "code", "lines", "line_count", "absolute", "absolute_count", "defined", "source",
                "current", "vm_state", "short_length",
            )
        ),
        ("reserved", "<u2", (4,)),
    ]
)
LUA_LAYOUTS = 8
INTERPRETER_FRAMES = 128
INTERPRETER_NO_LINE = 0xFFFFFFFF
INTERPRETER_FRAME = np.dtype([("code", "<u8"), ("where", "<u4"), ("place", "<u4")])
INTERPRETER_STACK = np.dtype(
    [
        ("id", "<u8"), ("kind", "<u4"), ("depth", "<u4"), ("native", "<u8"), ("native_depth", "<u4"), ("is_cut", "<u4"),
        ("places", "<u4", (MAX_FRAMES + 1,)), ("frames", INTERPRETER_FRAME, (INTERPRETER_FRAMES,)),
    ],
    align=True,
)
INTERPRETER_CODE = np.dtype(
    [
        ("id", "<u8"), ("kind", "<u4"), ("first_line", "<u4"), ("table_bytes", "<u4"), ("extra_bytes", "<u4"),
        ("name_length", "<u4"), ("name_state", "<u4"), ("file_length", "<u4"), ("file_state", "<u4"),
        ("name", "u1", (256,)), ("file", "u1", (512,)), ("extra", "u1", (1024,)), ("table", "u1", (16384,)),
    ],
    align=True,
)
HOLD_SLOTS = 1024
OF_PLACE = 0xFFFFFFFF
CONSTANTS = np.dtype(
    [("counts", "<u4"), ("remembers", "<u4"), ("hold_ns", "<u8"), ("look_ns", "<u8"), ("block_sets", "<u8")]
)

SHARED = np.dtype(
    [
        ("armed", "<u8"), ("epoch", "<u8"), ("published", "<u8"), ("follow", "<u8"),
        ("min_size", "<u8"), ("max_size", "<u8"), ("sample_bytes", "<u8"), ("pid_namespace", "<u8"),
        ("heartbeat_ns", "<u8"), ("looks_until_ns", "<u8"), ("behind", "<u8"), ("tracer", "<u8"),
        ("unknown_frees", "<u8"), ("tells_heap", "<u8"), ("freed_sets", "<u8"), ("last_generation", "<u8"),
        ("counts_references", "<u8"),
        ("released", "<u8", (HOLD_SLOTS,)),
    ]
)

ALLOCATION_RECORD = np.dtype(KEY.descr + ALLOCATION.descr)
"""A live allocation with its key: what a walk of the live map gives."""
OBJECT_RECORD = np.dtype(KEY.descr + OBJECT.descr)
"""A live object with its key."""
TOTALS_RECORD = np.dtype([("stack", "<u8"), *(field for field in STACK_TOTALS.descr if field[0] != "lives")])
"""Totals of one allocation stack; its `lives` are rows of LIFE_BIN."""
FREED_RECORD = np.dtype(FREE_SITE.descr + FREE_SEEN.descr)
"""Where blocks of one stack were freed, of those frees that were looked at."""
declare(ALLOCATION_RECORD, {"stack": Column.STACK})
declare(OBJECT_RECORD, {"stack": Column.STACK, "type": Column.TYPE})
declare(TOTALS_RECORD, {
    "stack": Column.STACK, "life_min_ns": Column.MINIMUM, "life_max_ns": Column.MAXIMUM,
    **dict.fromkeys(
        ("made", "made_bytes", "freed", "freed_bytes", "life_ns", "peak", "level", "risen"), Column.SUM
    ),
})  # fmt: skip
declare(FREED_RECORD, {
    "made": Column.STACK, "freed": Column.STACK, "given": Column.KEY, "called": Column.KEY, "count": Column.SUM,
})  # fmt: skip


class Given(IntFlag):
    SIZE = 1
    ALIGNMENT = 2
    REALLOC = 4
    INHERITED = 8


MAPPED_RECORD = np.dtype(
    [
        ("start", "<u8"), ("length", "<u8"), ("time_ns", "<u8"), ("stack", "<u8"),
        ("pid", "<u4"), ("tid", "<u4"), ("generation", "<u2"), ("site", "<u2"), ("flags", "<u4"),
        ("reserved_ns", "<u8"),
    ]
)
"""A live piece of memory that the target mapped itself (mmap, mremap).

`reserved_ns`: when the mapping was made that this one was put over, at a fixed address; 0: over none. What was put over
such a one has the same time.
"""
declare(MAPPED_RECORD, {"stack": Column.STACK})


class MappedFlag(IntFlag):
    """What `flags` of a MAPPED_RECORD says beside mmap's own flags.

    Takes the place of the size of huge pages (bits 26 to 31 of mmap's flags, MAP_HUGE_SHIFT in
    include/uapi/asm-generic/hugetlb_encode.h).
    """

    INHERITED = 1 << 31
    BY_HEAP = 1 << 30
    """It was made inside of a call of the heap: allocations tell of that memory."""


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
    JIT = 12
    FRAMES = 13
    FRAMES_GONE = 14
    ENDING = 15
    DISPATCHES = 16
    PATCHES = 17
    THREAD_ENDED = 18
    LEAVES = 19


class InterpreterRecord(IntEnum):
    STACK = 0
    PYTHON = 1
    LUA = 2
    LUA_LINES = 3


class RuleKind(IntEnum):
    NONE = 0
    STACK_POINTER = 1
    FRAME_POINTER = 2
    PLT = 3
    END = 4
    DEREFERENCE = 5
    SIGNAL = 6
    UNSUPPORTED = 7
    REALIGNED = 8


class TypeSource(IntEnum):
    """`enum type_source` of bpf/abi.h."""

    TEXT = 0
    UNREAD = 1
    CLASS = 2


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
    INTERPRETERS_FULL = 14
    RETURN_HIDDEN = 15
    DEEP_BOUND = 16
    GHOSTS_FULL = 17
    SPACE_TOTALS_FULL = 18
    INHERITED_FULL = 19


class WalkOutcome(IntEnum):
    """`enum walk_outcome` of bpf/abi.h."""

    REMEMBERED = 0
    JOINED = 1
    MADE = 2


class Count(IntEnum):
    """`enum count` of bpf/abi.h; WALKS begins a table of WALK_OUTCOMES for each operation."""

    FRAMES = 0
    FRAMES_JOINED = 1
    FORGOTTEN = 2
    INTERPRETER_WALKS = 3
    INTERPRETER_FRAMES = 4
    DUMPS = 5
    WALKS = 6


WALK_OUTCOMES = 4
COUNT_SLOTS = Count.WALKS + 16 * WALK_OUTCOMES


class ProcessState(IntEnum):
    WAITS = 0
    TRACED = 1
    ENDED = 2
