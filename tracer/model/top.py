"""Top, the live view: what it shows of a trace that goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from tracer.late_dataclasses import dataclass
from tracer.model.findings import ErrorFinding, FrameList, Growing, Holder, TypeRow
from tracer.model.reachability import Scan


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
    holders: Sequence[Holder] | None = None
    """Who held it then; None where nobody looked."""
    classes_before: tuple[tuple[str, int], ...] = ()
    """At the look before that one."""
    holders_before: Sequence[Holder] | None = None
    """At the look before that one; None where there was none, or where it is not known."""


@dataclass(frozen=True)
class HeldNode:
    """Something that holds memory, as a DominatorNode has it, and what its memory grew by between two looks."""

    holder: Holder
    id: str | None
    count: int
    bytes: int
    retained: int
    grown: int | None
    """Of `retained`, bytes; None where the look before did not see the process."""
    below: tuple[HeldNode, ...] = ()


@dataclass(frozen=True)
class HeldTree:
    """What holds the memory of one process."""

    pid: int
    nodes: tuple[HeldNode, ...]


@dataclass(frozen=True)
class Look:
    """What was found when the memory was looked into, and how that differs from the look before."""

    time_ns: int
    scans: tuple[Scan, ...]
    trees: tuple[HeldTree, ...] = ()
    growing: Growing | None = None
    """Who retains what has grown since `before_ns`; where that is None, what the trends call growing."""
    before_ns: int | None = None
    sizes: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """Bytes of entries by id, of each process that was looked into."""
    lost_sizes: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """Of these what nothing holds any more."""
    lost: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """By process that was looked into: blocks and bytes that nothing holds any more, with what is lost with them."""
    lost_before: Mapping[int, tuple[int, int]] | None = None
    """At the look before; None where there was none."""


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
    look: Look | None = None
    """The last at the memory; None before the first."""
    not_looked: str = ""
    """Why it was not looked into, as a clause, where that was tried last."""
