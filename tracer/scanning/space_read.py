"""One reading of an address space, and what is to be known of it."""

from __future__ import annotations

from dataclasses import field

from tracer.late_dataclasses import dataclass
from tracer.model.reachability import Scan
from tracer.reachability.memory import Memory
from tracer.scanning.resident_pages import ResidentPages
from tracer.scanning.running_reads import RunningRead
from tracer.scanning.thread_stacks import DumpedWalk


@dataclass(frozen=True)
class SpaceRead:
    memory: Memory | None
    scan: Scan
    walks: list[DumpedWalk] = field(default_factory=list)
    is_unsettled: bool = False
    """A block was on the move, or the process ran meanwhile: what is free may be one."""
    since_ns: int = 0
    """Of one that was stopped: when that began."""
    pages: ResidentPages | None = None
    running: RunningRead | None = None
    """Of one that was not stopped."""
    is_at_exec: bool = False
    """It was about to execute a program, which may have failed."""
