"""Findings of the analysis: leaks, errors, totals. Reports print these and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from tracer.late_dataclasses import dataclass
from tracer.model.addresses import Space
from tracer.model.balance import Balance
from tracer.model.frames import Frame
from tracer.model.heap_course import HeapPoint, Survivors
from tracer.model.last_spaces import last_by_space
from tracer.model.periods import Period
from tracer.model.reachability import Scan
from tracer.model.selection import KEEPS_ALL, Sample, Selection
from tracer.model.snapshot import Coverage, Loss, Process
from tracer.model.trends import Trend

FrameList = tuple[Frame, ...]
BAD_FREES = ("double-free", "invalid-free", "mismatched-free")
"""Kinds of errors that are a free which breaks a rule: valgrind has one name for all."""

REACHABLE, POSSIBLE, STACK_ONLY, LOST, INDIRECT = "reachable", "possible", "stack", "lost", "indirect"
REACHABILITY = (None, REACHABLE, POSSIBLE, STACK_ONLY, LOST, INDIRECT)
"""Of an entry, by Reach."""
LEAKED, OUTSTANDING, INHERITED, ALIVE_AT_EXEC = "leaked", "outstanding", "inherited", "alive-at-exec"
"""States of an entry."""
REINITIALISED, FREED_PAST_COUNTER = "reinitialised", "freed-past-counter"
REMARKS = (REINITIALISED, FREED_PAST_COUNTER)
"""Kinds of error that are worth a look but break no rule."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One of the objects or blocks that an entry merges."""

    address: int
    size: int | None
    references: int | None
    age_ns: int
    thread: int


@dataclass(frozen=True, slots=True)
class StackCount:
    """Calls of one operation from one stack."""

    stack: FrameList
    count: int


@dataclass(frozen=True, slots=True)
class UnpairedGet:
    """A get that nobody put, with how sure that is and why."""

    stack: FrameList
    count: int
    confidence: str
    reason: str
    probability: float | None = None
    """How likely it is the one, as measured (docs/pairing.md)."""
    taken_by: Frame | None = None
    """Of the stack: the call that the reference came to."""
    put_at: Frame | None = None
    """Where other objects put most of the references that are taken there, or None if they never do."""
    taken_for: Frame | None = None
    """Of the stack, where `taken_by` is a library's of the distribution: the program's call into it."""
    kept_at: int | None = None
    """Bytes inside of a struct where such a reference is stored, and no put is seen to take one or went with a free."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Words of one kind and place that point at what an entry merges."""

    count: int
    kind: str
    """"global", "thread-local", "stack", "register", "block", "mapping", "freed-block", or "other" for the rest."""
    name: str | None = None
    """A variable with the way to the member, `machines.host.kmaps`; of a block its struct's, `struct machine.kmaps`."""
    type: str | None = None
    """Of a block: its struct, class or counted type."""
    member: str | None = None
    offset: int | None = None
    """Of the word in its block; of a variable without a name its link address."""
    module: str | None = None
    stack: FrameList | None = None
    """Where the block or mapping was made; of a word on a stack the frame that it is in, and its callers."""
    freed_at: FrameList | None = None
    thread: int | None = None
    interior: bool = False
    """It points into the middle."""
    own_frame: int | None = None
    freed_own_frame: int | None = None
    """Index in `stack` of the frame that says whose block it is, past the allocator and its wrappers; in `freed_at`."""


@dataclass(frozen=True, slots=True)
class Retainer:
    """Who holds, alone, some of what grows: without it nothing would reach that from a root."""

    holder: Holder
    bytes: int


@dataclass(frozen=True, slots=True)
class Growing:
    """What grows, in bytes, and who retains most of it. One may retain another, so their bytes may overlap."""

    bytes: int
    retainers: tuple[Retainer, ...]


@dataclass(frozen=True, slots=True)
class DominatorNode:
    """Something that holds memory, and what only it retains: without it nothing would reach that from a root."""

    holder: Holder
    id: str | None
    """Of the entry that it is; None for a root, or what is no entry."""
    count: int
    bytes: int
    """Of the entry itself; 0 for a root."""
    retained: int
    """Bytes of it and of all below it."""
    below: tuple[DominatorNode, ...]
    """What has this as the last that all ways to it lead through; most first."""


@dataclass(frozen=True, slots=True)
class DominatorTree:
    """What holds the memory of a process that is not lost: roots, and entries that several roots hold."""

    pid: int
    nodes: tuple[DominatorNode, ...]


@dataclass(frozen=True, slots=True)
class HeapTop:
    """The last block of a heap, before which memory is free: nothing of that is given back while the block lives."""

    pid: int
    size: int
    age_ns: int
    free_bytes: int
    stack: FrameList


@dataclass(frozen=True, slots=True)
class Leak:
    """Objects, blocks or mappings of one type, process and stack that are outstanding."""

    id: str
    """Stable across runs and rebuilds: hash of kind, type and symbolized stack."""
    kind: str
    """"reference", "allocation" or "mapping"."""
    type: str | None
    pid: int
    state: str
    """LEAKED, OUTSTANDING, INHERITED or ALIVE_AT_EXEC."""
    count: int
    """Of all there are: estimated where blocks were sampled, and so are `bytes`, `made` and `freed`."""
    bytes: int | None
    stack: FrameList
    """Leaf first. The leaf is the function that made it, where `maker` says so; else the caller of that."""
    stack_complete: bool
    stack_status: str
    instances: tuple[Instance, ...] = ()
    reachability: str | None = None
    """One of REACHABILITY; None where it was not looked into."""
    reachability_reason: str | None = None
    """By what it is held, or why it was not looked into."""
    holders: Sequence[Holder] | None = None
    """Who points at it, most first, those that were freed last; None where nobody looked."""
    holders_and_count: str = ""
    """Of references: what their holders say of their count."""
    owner: str | None = None
    """Of what is lost with its owner: the id of the owner's entry, of the same process."""
    below_count: int = 0
    """Of what is lost: objects, blocks and mappings that are lost with it."""
    below_bytes: int = 0
    size_min: int | None = None
    size_max: int | None = None
    own_frame: int | None = None
    """Index into `stack` of the first frame outside libc, libstdc++, the allocator and the stubs."""
    maker: str | None = None
    """The function that made it, if it is the leaf of `stack`."""
    gets: tuple[StackCount, ...] = ()
    puts: tuple[StackCount, ...] = ()
    unpaired: tuple[UnpairedGet, ...] = ()
    """References that were never put, the surest first; a create's own reference has the create's stack."""
    healthy: tuple[StackCount, ...] = ()
    """Where objects ended that were created at the same place."""
    held_in: tuple[str, ...] = ()
    """Counted types whose objects hold it, in whose making it was taken, or whose last put would have put it; the
    likeliest first."""
    cause: str | None = None
    """Of references: what entries have in common whose missing put, or accused get, is one."""
    kept_alive_by: str | None = None
    """The cause of other objects, that hold these: no cause of their own."""
    number: int = 0
    """Of references of one analysis: by which `keeper` of others means this entry; 0: none does."""
    keeper: int = 0
    """The number of the entry of the objects by which alone these live, told by who points at whom; 0: none."""
    objects_in: tuple[int, ...] = ()
    """Of blocks, each with one counted object in it: the numbers of the objects' entries, or of their keepers'."""
    memory_of: str | None = None
    """Of blocks: the cause, or else the id, of the entry whose objects they are the memory of."""
    balance: Balance | None = None
    """Of references."""
    made: int | None = None
    freed: int | None = None
    freed_at: tuple[StackCount, ...] = ()
    """Where blocks of the same stacks were freed, of those frees that were looked at; most first."""
    trend: Trend | None = None
    notes: tuple[str, ...] = ()
    """Facts about this entry: counter changed without a stub, ..."""
    suppressed_by: str | None = None
    sample: Sample | None = None
    """What the estimates rest on; None where nothing is estimated."""
    generation: int = 0
    """Of the address space: with the pid it says which."""

    @property
    def space(self) -> Space:
        return self.pid, self.generation

    @property
    def kept(self) -> int:
        """How many of the objects or blocks were kept: all, or those that were drawn."""
        return self.count if self.sample is None else self.sample.count

    @property
    def callers(self) -> FrameList:
        """Return the stack without the function that made it."""
        return self.stack[1:] if self.maker is not None else self.stack

    @property
    def start(self) -> int | None:
        """Return the index of the frame at which to start to read; None where no stack was kept."""
        first = min(len(self.stack) - len(self.callers), len(self.stack) - 1)
        return first if self.own_frame is None and self.stack else self.own_frame

    @property
    def is_held(self) -> bool:
        """Tell whether it is memory that something still points at: not freed, but not lost either. A reference that
        nobody put is a mistake wherever its object is."""
        return self.kind != "reference" and self.reachability in (REACHABLE, STACK_ONLY)


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
    probably: FrameList | None = None
    """Over-put: the put that was probably one too many."""
    reason: str | None = None
    """Why it is believed to be that put."""
    last_get: FrameList | None = None
    """Freed while counted: the last reference that was got."""
    holders: tuple[Holder, ...] = ()
    """Freed while counted: who still pointed at it at the end."""
    is_least: bool = False
    """Whether `count` is of those that were looked at, and there may be more."""


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
    """Of every size, and exact also where blocks were sampled."""
    freed: int
    outstanding: int
    """Of the sizes that were kept; estimated where blocks were sampled."""
    outstanding_bytes: int
    sample: Sample | None = None


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
    coverage_gaps: tuple[str, ...] = ()
    """What was not seen of types that occurred; reports say it before anything else."""
    partly_seen: tuple[str, ...] = ()
    """Types, and words for kinds of memory, of which calls went unseen: nothing of them is called clean."""
    notes: tuple[str, ...] = ()
    events_seen: int = 0
    code: tuple[CodeRange, ...] = ()
    """What frames' addresses belong to; sorted by path and start."""
    freed: tuple[FreedAt, ...] = ()
    """By allocation stack; only where AnalysisOptions.freed_stacks asks for it: there may be a million."""
    survivors: tuple[Survivors, ...] = ()
    """Over the time of the trace, ascending; at most 100, none where nothing is outstanding."""
    heap_course: tuple[HeapPoint, ...] = ()
    """Over the time of the trace, ascending; some hundred at most, none where not all blocks were kept."""
    selection: Selection = KEEPS_ALL
    """Which blocks were kept."""
    older_ns: int = 0
    """Of what is alive only what is at least so old is in `leaks`."""
    type_names: tuple[str, ...] = ()
    """Counted types that were probed or occurred; sorted, and none where it is not known."""
    periods: tuple[Period, ...] = ()
    """Between checkpoints, in order of time; none where there was no checkpoint."""
    scans: tuple[Scan, ...] = ()
    """Of the address spaces whose memory was looked into, or could not be."""
    growing: Growing | None = None
    """What retains the entries that grow, or None if nothing grows or nobody looked."""
    dominators: Sequence[DominatorTree] = ()
    """Of the processes that were looked into; that of the most bytes first."""
    heap_tops: tuple[HeapTop, ...] = ()
    """Of the processes that were looked into, and whose heap has much that is free."""

    @property
    def is_judged(self) -> bool:
        """Whether the end of the trace is that of a launched target."""
        return self.mode == "launched" and self.target_ended

    @property
    def is_whole(self) -> bool:
        """Tell whether all was seen: nothing was lost, and no block was passed over by sampling."""
        return self.complete and not self.selection.is_sampled

    @cached_property
    def last_spaces(self) -> tuple[Process, ...]:
        """The last address space of each process."""
        return tuple(last for space, last in self.last_by_space.items() if last.space == space)

    @cached_property
    def last_by_space(self) -> Mapping[Space, Process]:
        """The last address space of its process by each, in the order in which the processes began."""
        return last_by_space(self.processes)

    def process_of(self, space: Space) -> Space:
        """Return the last address space of the process that has this one: the same for all that it had."""
        last = self.last_by_space.get(space)
        return space if last is None else last.space

    @cached_property
    def leaked(self) -> tuple[Leak, ...]:
        """Those judged a leak; never any for a target that lives, and no memory that something still points at."""
        return tuple(leak for leak in self.leaks if leak.state == "leaked" and not leak.is_held)

    @cached_property
    def held(self) -> tuple[Leak, ...]:
        """Memory that was not freed, and that something pointed at to the end."""
        return tuple(leak for leak in self.leaks if leak.state == "leaked" and leak.is_held)
