"""The Snapshot: all that is known at one instant. Live capture and a recording both produce it."""

from __future__ import annotations

import signal
from collections.abc import Mapping as MappingType
from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from itertools import zip_longest

import numpy as np

from tracer.late_dataclasses import dataclass
from tracer.model.addresses import Space
from tracer.model.distinct_values import distinct, is_in_ordered
from tracer.model.events import ERROR_EVENT, EVENT
from tracer.model.frames import Frame, HeapCalls
from tracer.model.generated import GeneratedFrame
from tracer.model.holders import HOLDER_RECORD, HolderName
from tracer.model.periods import Checkpoint
from tracer.model.reachability import REACH_RECORD, Scan
from tracer.model.recorded_names import recorded_as
from tracer.model.records import (
    ALLOCATION_RECORD,
    FRAME_EXACT,
    FREED_RECORD,
    MAPPED_RECORD,
    OBJECT_RECORD,
    TOTALS_RECORD,
    StackStatus,
)
from tracer.model.selection import KEEPS_ALL, Selection
from tracer.model.statistics import CHECKPOINT_TOTALS, CONDENSED, FREED_HOLDER, HEAP_POINT, LIFE_BIN, BalancedStatistics
from tracer.model.statistics import Records as Records

ANONYMOUS = "anonymous"
_OPERATORS = 4
_WAY = 8
"""Calls from a get, put or creation on, of which it may be asked what they pass."""
EVERY_KIND = ("reference", "allocation", "mapping")
"""Of entries, in the order in which these stand."""


CRASHES = frozenset({
    signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP, signal.SIGSYS,
})  # fmt: skip
"""Signals by which a program ends that did something wrong: it may have lost no memory, but is not clean."""


@dataclass(frozen=True)
class Binary:
    """An ELF executable or library that code of the target came from."""

    id: int
    """From 1; never reused within a trace."""
    path: str
    """As the target names it."""
    build_id: str | None = None
    """Hex digits of the GNU build id."""
    open_path: str | None = None
    """A path that opens the file that really ran (for example /proc/self/fd/N); None after the fact."""
    deleted: bool = False
    kind: str = "native"
    """Of its frames: "native", or "jit" for an image that was made at run time and stood in no file. ANONYMOUS stands
    for the code of one address space that is in no binary."""
    has_operators: bool = False
    """It defines an `operator new` or `operator delete` of its own, and is not the C++ runtime."""


@dataclass(frozen=True)
class Mapping:
    """A range of a process's address space backed by a binary, with the times it came and went."""

    pid: int
    generation: int
    start: int
    end: int
    file_offset: int
    binary: int
    executable: bool
    from_ns: int
    until_ns: int | None = None
    link_address: int | None = None
    """Where `start` lies as linked; None where it is not known."""

    def holds(self, address: int, time_ns: int) -> bool:
        """Tell whether an address was in it at a time."""
        is_there = self.from_ns <= time_ns and (self.until_ns is None or time_ns < self.until_ns)
        return is_there and self.start <= address < self.end


@dataclass(frozen=True)
class Process:
    """One address space of the target: a process, from its start or last exec to its end or next exec."""

    pid: int
    generation: int
    parent: int | None
    command: tuple[str, ...]
    executable: str | None
    started_ns: int
    ended_ns: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    by_exec: bool = False
    """Ended by an exec: what was live then is "alive at exec"."""
    forked_from: tuple[int, int] | None = None
    """(pid, generation) whose memory it began as a copy of; None after an exec."""
    made: int = 0
    made_bytes: int = 0
    freed: int = 0
    """Where not all blocks are kept, those too that were not made here: it cannot be told."""
    freed_bytes: int = 0
    """Of the blocks that were kept."""
    unknown_frees: int = 0

    @property
    def space(self) -> Space:
        return self.pid, self.generation


@dataclass(frozen=True, slots=True)
class Stack:
    """Addresses, leaf first, each a frame key: binary id << 48 | link address."""

    frames: tuple[int, ...]
    status: StackStatus = StackStatus.COMPLETE

    @property
    def complete(self) -> bool:
        return self.status in (StackStatus.COMPLETE, StackStatus.FRAME_POINTER)


@dataclass(frozen=True)
class Loss:
    """Data that could not be kept: how much, why, and the option or action that cures it.

    `hides`: kinds of entries ("reference", "allocation", "mapping") that may seem to be alive because of it: their end
    may be among what was lost. None of them is called a leak. `pids`: the processes of which it was lost, if no other
    can be concerned but those that they fork.
    """

    reason: str
    count: int
    remedy: str
    hides: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Unresolved:
    """A function of a spec that no probe covers, and why."""

    operation: str
    type: str
    function: str
    reason: str


@dataclass(frozen=True)
class UncoveredInstances:
    """Inlined copies of a function that no probe covers, and why."""

    operation: str
    type: str
    function: str
    copies: int
    reason: str


@dataclass(frozen=True)
class Missing:
    """What was asked for by name and is in nothing that ran: a type (or preset), or one function of it."""

    type: str
    function: str = ""

    def __str__(self) -> str:
        return f"{self.function} of {self.type}" if self.function else self.type


@dataclass(frozen=True)
class Untraced:
    """A program in which nothing is probed, so that whatever it did is unknown."""

    pid: int
    generation: int
    program: str
    reason: str
    """As a clause: "it is static and has no symbols"."""


@dataclass(frozen=True)
class SiteInfo:
    """What a report says of a site: index as in the records' `site` field."""

    operation: int
    function: str
    module: str
    type: str | None
    counter: bool = True
    """It says where the counter is."""
    address: int = 0
    """Of the function as linked; 0 where it is not known."""
    memory: int = 0
    """MemoryTraits of the blocks that it makes."""


@dataclass(frozen=True)
class Coverage:
    attached: int = 0
    unresolved: tuple[Unresolved, ...] = ()
    uncovered_instances: tuple[UncoveredInstances, ...] = field(default=(), metadata=recorded_as("uncovered_copies"))
    missing: tuple[Missing, ...] = ()
    untraced: tuple[Untraced, ...] = ()


@dataclass(frozen=True)
class TypeTotals:
    """Counts of one type over the whole trace, of one process."""

    type: int
    pid: int
    generation: int
    created: int = 0
    gets: int = 0
    puts: int = 0
    destroyed: int = 0
    unknown_gets: int = 0
    unknown_puts: int = 0


def _empty(dtype: np.dtype[np.void]) -> Records:
    return np.zeros(0, dtype=dtype)


@dataclass(frozen=True)
class Snapshot:
    """All that is known at one instant. Bulk data are structured arrays of tracer.model.records.

    `allocations`, `objects`: what is alive. `history`: the EVENTs of the live objects, in order of
    time. `errors`: ERROR_EVENTs. Times are nanoseconds since the trace began.
    """

    mode: str
    """"launched" or "attached"."""
    duration_ns: int
    processes: tuple[Process, ...] = ()
    binaries: tuple[Binary, ...] = ()
    mappings: tuple[Mapping, ...] = ()
    sites: tuple[SiteInfo, ...] = ()
    types: MappingType[int, str] = field(default_factory=dict)
    type_totals: tuple[TypeTotals, ...] = ()
    stacks: MappingType[int, Stack] = field(default_factory=dict)
    script_frames: tuple[Frame, ...] = field(default=(), metadata=recorded_as("guests"))
    """Frames of interpreters; a frame key SCRIPT_BINARY << 48 | index stands for each."""
    generated: MappingType[int, GeneratedFrame] = field(default_factory=dict)
    """By frame key: what only the running target could tell of code that it made."""
    allocations: Records = field(default_factory=lambda: _empty(ALLOCATION_RECORD))
    objects: Records = field(default_factory=lambda: _empty(OBJECT_RECORD))
    mapped: Records = field(default_factory=lambda: _empty(MAPPED_RECORD))
    inherited: Records = field(default_factory=lambda: _empty(ALLOCATION_RECORD))
    """Copies, made by fork, of blocks of the parent; keyed by the child."""
    inherited_objects: Records = field(default_factory=lambda: _empty(OBJECT_RECORD))
    totals: Records = field(default_factory=lambda: _empty(TOTALS_RECORD))
    checkpoints: tuple[Checkpoint, ...] = ()
    checkpoint_totals: Records = field(default_factory=lambda: _empty(CHECKPOINT_TOTALS))
    life_bins: Records = field(default_factory=lambda: _empty(LIFE_BIN))
    """Of the freed blocks, by stack."""
    heap_course: Records = field(default_factory=lambda: _empty(HEAP_POINT))
    """The heap at moments of the trace, in order of time; none where not all blocks were kept."""
    free_sites: Records = field(default_factory=lambda: _empty(FREED_RECORD))
    history: Records = field(default_factory=lambda: _empty(EVENT))
    condensed: Records = field(default_factory=lambda: _empty(CONDENSED))
    """What `history` leaves out of busy live objects: pairs of dtype CONDENSED."""
    freed_holders: Records = field(default_factory=lambda: _empty(FREED_HOLDER))
    """Blocks that were freed with a pointer to a counted object, of those left and of those that ended."""
    balanced: BalancedStatistics = field(default_factory=BalancedStatistics)
    """What the objects went through that ended."""
    errors: Records = field(default_factory=lambda: _empty(ERROR_EVENT))
    error_history: Records = field(default_factory=lambda: _empty(EVENT))
    """The EVENTs of ended objects that were put too often, as far as they were still at hand."""
    losses: tuple[Loss, ...] = ()
    coverage: Coverage = Coverage()
    notes: tuple[str, ...] = ()
    events_seen: int = 0
    target_ended: bool = True
    """False when the trace stopped while the target lived: everything is outstanding, nothing leaked."""

    selection: Selection = KEEPS_ALL
    """Which blocks were kept."""
    scans: tuple[Scan, ...] = ()
    """Of the address spaces whose memory was looked into, or could not be; of the others nobody asked."""
    reach: Records = field(default_factory=lambda: _empty(REACH_RECORD))
    """The class of what is outstanding, where it was looked into."""
    holders: Records = field(default_factory=lambda: _empty(HOLDER_RECORD))
    """Who points at what is outstanding, and at counted objects whose memory was freed, where it was looked into."""
    holder_names: tuple[HolderName, ...] = ()
    """What the target's files say of `holders`."""

    @property
    def complete(self) -> bool:
        return not self.losses

    def is_whole(self, pid: int, generation: int) -> bool:
        """Tell whether nothing was lost of an address space, nor of those that it began as a copy of."""
        return not self.losses or (pid, generation) in self._whole

    @cached_property
    def mappings_of(self) -> MappingType[Space, Sequence[Mapping]]:
        """The mappings by address space: of thousands of processes there are tens of thousands."""
        found: dict[Space, list[Mapping]] = {}
        for mapping in self.mappings:
            found.setdefault((mapping.pid, mapping.generation), []).append(mapping)
        return found

    @cached_property
    def _whole(self) -> frozenset[tuple[int, int]]:
        if not all(loss.pids for loss in self.losses):
            return frozenset()
        lossy = {pid for loss in self.losses for pid in loss.pids}
        copied = {process.space: process.forked_from for process in self.processes}

        def is_whole(space: tuple[int, int] | None) -> bool:
            for _ in copied:
                if space is None or space[0] in lossy:
                    break
                space = copied.get(space)
            return space is None

        return frozenset(space for space in copied if is_whole(space))

    @property
    def heap_calls(self) -> HeapCalls:
        """Return the calls that may be for the heap: the first of each stack, as operators call each other."""
        indirect = self.free_sites[self.free_sites["called"] != 0]
        stacks = (self.stacks.get(freed) for freed in indirect["freed"].tolist())
        return HeapCalls(
            callers={key for stack in self.stacks.values() for key in stack.frames[:_OPERATORS]},
            by_pointer={key for stack in stacks if stack is not None for key in stack.frames[:1]},
            called=set(indirect["called"].tolist()),
        )

    @property
    def reference_calls(self) -> list[int]:
        """Return the calls on the way to gets, puts and creations of the types of which something is outstanding or was
        put too often: the innermost of all stacks first."""
        types = distinct(np.concatenate([self.objects["type"], self.errors["broken_type"]]))
        if not len(types):
            return []
        pairs, deaths, courses = (
            table[is_in_ordered(table["type"], types)]
            for table in (self.balanced.pairs, self.balanced.deaths, self.balanced.courses)
        )
        columns = [
            self.objects["stack"], self.history["stack"], self.error_history["stack"], self.condensed["get_stack"],
            self.condensed["put_stack"], pairs["get_stack"], pairs["put_stack"], deaths["create_stack"],
            courses["stack"],
        ]  # fmt: skip
        known = (self.stacks.get(stack) for stack in distinct(np.concatenate(columns)).tolist())
        ways = [stack.frames[:_WAY] for stack in known if stack is not None]
        innermost_first = (key for depth in zip_longest(*ways) for key in depth if key is not None)
        return list(dict.fromkeys(key for key in innermost_first if not key & FRAME_EXACT))
