"""Verdict on the objects of one group: what was never put."""

from __future__ import annotations

from tracer.analysis.makings import Making, Taking
from tracer.late_dataclasses import dataclass
from tracer.model.findings import StackCount, UnpairedGet


@dataclass(frozen=True)
class Verdict:
    """What was never put in the objects of one group, the surest first, and where healthy ones ended."""

    unpaired: tuple[UnpairedGet, ...] = ()
    healthy: tuple[StackCount, ...] = ()
    around: tuple[str, ...] = ()
    """Types of which a put would have been around the one that is missing, the innermost first."""
    taking: Taking | None = None
    """Where the first of `unpaired` was taken."""
    making: Making | None = None
    made_with: tuple[str, ...] = ()
    """Types of objects that are left as well, in whose makings the first of `unpaired` was taken, the innermost
    first."""
