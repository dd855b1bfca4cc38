"""Top, the live view: what it shows of a trace that goes on."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.model.findings import ErrorFinding, FrameList, Holder, TypeRow


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
    classes: tuple[tuple[str, int], ...] = ()
    """Words of REACHABILITY, with how many there were at the last look at the memory, most first."""
    holders: tuple[Holder, ...] | None = None
    """Who held it then; None where nobody looked."""


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
    looked_ns: int | None = None
    """When the memory was last looked into; None before the first time."""
    held_ns: int = 0
    """How long the target stood for it; the longest of several."""
    not_looked: str = ""
    """Why it was not, as a clause, where that was tried last."""
