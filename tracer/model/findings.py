"""What the analysis says: leaks, errors, totals. Reports print these and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.model.frames import Frame
from tracer.model.snapshot import Coverage, Loss, Process

FrameList = tuple[Frame, ...]


@dataclass(frozen=True)
class Instance:
    """One of the objects or blocks that an entry merges."""

    address: int
    size: int | None
    references: int | None
    age_ns: int
    thread: int


@dataclass(frozen=True)
class StackCount:
    """Calls of one operation from one stack."""

    stack: FrameList
    count: int


@dataclass(frozen=True)
class UnpairedGet:
    """A get that nobody put, with how sure that is and why."""

    stack: FrameList
    count: int
    confidence: str
    reason: str


@dataclass(frozen=True)
class Leak:
    """Objects, blocks or mappings of one type, process and stack that are outstanding."""

    id: str
    """Stable across runs and rebuilds: hash of kind, type and symbolized stack."""
    kind: str
    """"reference", "allocation" or "mapping"."""
    type: str | None
    pid: int
    state: str
    """"leaked", "outstanding", "inherited" or "alive-at-exec"."""
    count: int
    bytes: int | None
    stack: FrameList
    stack_complete: bool
    stack_status: str
    instances: tuple[Instance, ...] = ()
    reachability: str | None = None
    size_min: int | None = None
    size_max: int | None = None
    own_frame: int | None = None
    """Index into `stack` of the first frame outside libc, libstdc++, the allocator and the stubs."""
    gets: tuple[StackCount, ...] = ()
    puts: tuple[StackCount, ...] = ()
    unpaired: tuple[UnpairedGet, ...] = ()
    made: int | None = None
    freed: int | None = None
    notes: tuple[str, ...] = ()
    """Facts about this entry: counter changed without a stub, ..."""
    suppressed_by: str | None = None


@dataclass(frozen=True)
class ErrorFinding:
    """A broken rule, with up to three stacks: offender, release, birth."""

    kind: str
    type: str | None
    pid: int
    count: int
    address: int
    stack: FrameList
    created_at: FrameList | None
    released_at: FrameList | None


@dataclass(frozen=True)
class TypeRow:
    type: str
    created: int
    gets: int
    puts: int
    destroyed: int
    outstanding: int


@dataclass(frozen=True)
class AllocationTotals:
    made: int
    freed: int
    outstanding: int
    outstanding_bytes: int


@dataclass(frozen=True)
class CodeRange:
    """Code of a binary as it was mapped: link addresses [start, end)."""

    path: str
    build_id: str | None
    start: int
    end: int
    file_offset: int
    fixed: bool
    """Mapped where it was linked to be: no shared library, no position-independent program."""


@dataclass(frozen=True)
class FreedAt:
    """Blocks that were made at a stack and freed again."""

    stack: FrameList
    count: int
    bytes: int


@dataclass(frozen=True)
class Survivors:
    """Of the blocks and mappings that are outstanding: those that had been made by a time."""

    time_ns: int
    count: int
    bytes: int


@dataclass(frozen=True)
class Findings:
    """The whole result of one analysis; every report prints this."""

    mode: str
    duration_ns: int
    complete: bool
    target_ended: bool
    losses: tuple[Loss, ...]
    coverage: Coverage
    processes: tuple[Process, ...]
    allocations: AllocationTotals
    types: tuple[TypeRow, ...]
    leaks: tuple[Leak, ...]
    """Sorted: references before allocations before mappings; bytes, then count, descending."""
    errors: tuple[ErrorFinding, ...]
    suppressed: tuple[Leak, ...] = ()
    notes: tuple[str, ...] = ()
    events_seen: int = 0
    code: tuple[CodeRange, ...] = ()
    """What frames' addresses belong to; sorted by path and start."""
    freed: tuple[FreedAt, ...] = ()
    """By allocation stack; only where AnalysisOptions.freed_stacks asks for it: there may be a million."""
    survivors: tuple[Survivors, ...] = ()
    """Over the time of the trace, ascending; at most 100, none where nothing is outstanding."""

    @property
    def leaked(self) -> tuple[Leak, ...]:
        """Those judged a leak; never any for a target that lives."""
        return tuple(leak for leak in self.leaks if leak.state == "leaked")
