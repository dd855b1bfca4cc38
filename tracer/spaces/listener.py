"""Listeners of address spaces: whoever keeps something for each hears here what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.binaries.open_binaries import OpenBinary
from tracer.late_dataclasses import dataclass
from tracer.model.addresses import Space


@dataclass(frozen=True)
class Moment:
    """When something happened, by two clocks."""

    kernel_ns: int
    """The kernel's monotonic clock."""
    trace_ns: int
    """Since the trace began."""


class SpaceListener:
    """Hears of every address space; a subclass overrides what it wants to know.

    Of a fork all listeners hear in their order, of an end in the reverse: who builds on another's knowledge still
    has it then.
    """

    def began(self, space: Space, moment: Moment) -> None:
        """Hear of a process that is attached to."""

    def forked(self, parent: Space, child: Space, moment: Moment) -> None:
        """Hear of a child with a copy of its parent's memory, before its first step."""

    def executed(self, before: Space | None, space: Space, moment: Moment) -> None:
        """Hear of a new program; its predecessor, if there was one, has ended for all listeners."""

    def mapped(self, space: Space, binaries: Sequence[OpenBinary], moment: Moment) -> None:
        """Hear what the process maps, read anew while the loader waits or when it is attached to."""

    def ended(self, space: Space, moment: Moment) -> None:
        """Hear of the end of a process, or of its program's by an exec."""
