"""Periods between checkpoints."""

from __future__ import annotations

from tracer.late_dataclasses import dataclass
from tracer.model.frames import Frame


@dataclass(frozen=True)
class Checkpoint:
    """A moment that the user marked while the trace ran."""

    number: int
    """From 1."""
    time_ns: int


@dataclass(frozen=True)
class PeriodRow:
    """What one entry, all processes together, did in a period."""

    id: str
    kind: str
    type: str | None
    stack: tuple[Frame, ...]
    own_frame: int | None
    made: int
    freed: int | None
    """In the period, whenever it was made; None for mappings: it is not known by stack."""
    outstanding: int
    """Made in the period and still there at the end of the trace."""
    outstanding_bytes: int | None


@dataclass(frozen=True)
class Period:
    """The time from one checkpoint to the next, from the start to the first, or from the last to the end."""

    number: int
    """From 1; the period ends with the checkpoint of this number, the last one with the trace."""
    from_ns: int
    until_ns: int
    rows: tuple[PeriodRow, ...] = ()
    """Those that left most bytes, then objects, then made most, first."""
