"""Events of the ring: one dtype, and a view of it for each kind of operation; `struct event` of bpf/abi.h."""

from __future__ import annotations

from enum import IntEnum, IntFlag

import numpy as np

from tracer.model.columns import Column, declare

EVENT = np.dtype(
    [
        ("time_ns", "<u8"), ("address", "<u8"), ("object", "<u8"), ("stack", "<u8"), ("value", "<u8"), ("extra", "<u8"),
        ("pid", "<u4"), ("tid", "<u4"), ("generation", "<u2"), ("group", "<u2"), ("site", "<u2"),
        ("operation", "u1"), ("flags", "u1"),
        ("count_read", "<i4"), ("count", "<i4"), ("serial", "<u4"), ("reserved", "<u4"),
    ],
    align=True,
)
"""An event of any operation, with the names that recordings have; the views that follow say what a field means."""


def _view(**names: str) -> np.dtype[np.void]:
    """Return EVENT with other names for some of its fields: an array of it is viewed as this, not copied."""
    return np.dtype([(names.get(name, name), EVENT[name]) for name in EVENT.names or ()], align=True)


MEMORY = ("pid", "generation", "group", "address")
"""Fields that say where an object is: one may have the memory of another that has ended."""
IDENTITY = (*MEMORY, "serial")
"""Fields that say which object an event belongs to."""
CREATE_EVENT = _view(value="type")
CHANGE_EVENT = _view(value="holder", extra="type")
"""A get, a put or a delete; `type` where it is known of an object that was not seen to be created, else 0."""
MAP_EVENT = _view(object="length", value="mapping_flags")
MAPPING_EVENT = _view(object="length", value="old_address", extra="old_length", flags="remap")
"""An unmap, a remap, or the undoing of one."""
_ERROR = {"object": "release", "value": "birth", "extra": "broken_type", "flags": "error", "reserved": "represented"}
ERROR_EVENT = _view(**_ERROR, count_read="where", count="block_size")
"""A broken rule. `release`, `birth`: stacks; `represented`: how many errors a sampled one stands for. `serial` of a
free of what is no block: 1 + the place in Snapshot.holder_names of the variable that it is, else 0."""
HOLDER_FREED_EVENT = _view(value="birth", count_read="offset", count="block_size")
"""A block was freed in which, `offset` bytes from its start, a pointer to a counted object stood. `stack`: of the free;
`birth`: of the block."""
COUNTED_EVENT = _view(**_ERROR)
"""The same of an object whose block was freed while it was counted; `count`: that it had."""

declare(EVENT, {"stack": Column.STACK})
for _errors in (ERROR_EVENT, COUNTED_EVENT):
    declare(_errors, {
        "stack": Column.STACK, "release": Column.STACK, "birth": Column.STACK, "broken_type": Column.TYPE,
    })  # fmt: skip


class ErrorKind(IntEnum):
    NONE = 0
    OVER_PUT = 1
    USE_AFTER_ZERO = 2
    DELETE_WHILE_REFERENCED = 3
    REINITIALISED = 4
    DOUBLE_FREE = 5
    INVALID_FREE = 6
    MISMATCHED_FREE = 7
    FREED_WHILE_COUNTED = 8
    FREED_PAST_COUNTER = 9


class Where(IntFlag):
    """Where the address of a free of what is no block lies; what is above `AROUND_SHIFT` is the distance from the start
    of the block around it. Recordings call it `count_read`."""

    ON_STACK = 1
    ABORTED = 2
    """The C library ended the program in this very call."""
    NO_MEMORY = 4
    """Before it no page is there, as it is before each block that was not swapped out."""
    BEHIND_FRAMES = 8
    """On the stack of a thread, but behind all of its frames: there are its thread-local variables."""


AROUND_SHIFT = 8


class EventFlag(IntFlag):
    LAST = 1
    UNKNOWN = 2
    COUNT_UNREAD = 4


class RemapRecord(IntEnum):
    """`enum remap_record` of bpf/abi.h."""

    ENTRY = 1
    RETURN = 2
