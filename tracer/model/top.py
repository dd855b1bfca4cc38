"""What a live view shows of a trace that goes on."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.model.findings import ErrorFinding, FrameList, TypeRow


@dataclass(frozen=True)
class TopRow:
    """One entry, all processes together."""

    id: str
    kind: str
    type: str | None
    count: int
    bytes: int | None
    count_per_second: float
    """Since the sample before; 0 in the first."""
    bytes_per_second: float
    count_since_mark: int
    bytes_since_mark: int
    word: str | None
    """Of its Trend."""
    stack: FrameList
    own_frame: int | None


@dataclass(frozen=True)
class TopSample:
    """What was outstanding at one moment."""

    time_ns: int
    bytes: int = 0
    blocks: int = 0
    """Blocks and mappings."""
    objects: int = 0
    lost: int = 0
    mark_ns: int | None = None
    """When the last mark was set; None before the first."""
    rows: tuple[TopRow, ...] = ()
    types: tuple[TypeRow, ...] = ()
    errors: tuple[ErrorFinding, ...] = ()
    """Rules that were broken so far, the most frequent first; without remarks."""
