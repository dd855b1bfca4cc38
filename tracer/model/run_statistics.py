"""Run statistics: what a trace had to do, for whoever asks what it costs."""

from __future__ import annotations

from collections.abc import Mapping

from tracer.late_dataclasses import dataclass
from tracer.model.operations import Operation


@dataclass(frozen=True)
class WalkCounts:
    """Walks of the native stack on behalf of one operation."""

    operation: Operation
    remembered: int
    """Of these no frame was walked."""
    joined: int
    """Of these the inner frames were walked; the others were remembered."""
    made: int

    @property
    def total(self) -> int:
        return self.remembered + self.joined + self.made


@dataclass(frozen=True)
class RingCounts:
    """What came through a ring buffer."""

    name: str
    records: int
    size_bytes: int
    """With what the kernel puts before each record."""


@dataclass(frozen=True)
class RunStatistics:
    """Counts of the kernel side, and of what user space took from it."""

    walks: tuple[WalkCounts, ...]
    frames_walked: int
    frames_joined: int
    """Frames of joined walks that were remembered."""
    forgotten: int
    """Walks that were joined or made and that nothing can be remembered of."""
    interpreter_walks: int
    interpreter_frames: int
    dumps: int
    """Stacks that were dumped, to be walked to their end in user space."""
    rings: tuple[RingCounts, ...]
    holds: Mapping[str, int]
    """How often a thread was held, by the reason."""
