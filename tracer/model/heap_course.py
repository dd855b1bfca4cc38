"""Heap over the time of a trace: what was made by when and is outstanding, and what lived when."""

from __future__ import annotations

from tracer.late_dataclasses import dataclass


@dataclass(frozen=True)
class Survivors:
    """Of the blocks and mappings that are outstanding: those that had been made by a time."""

    time_ns: int
    count: int
    bytes: int
    mapped_bytes: int = 0
    """Of these: in mappings."""


@dataclass(frozen=True)
class HeapPoint:
    """What the processes that lived at a time had of blocks, and what all had made until then."""

    time_ns: int
    live: int
    live_bytes: int
    made: int
    made_bytes: int
