"""A reference that is believed never to have been given back."""

from __future__ import annotations

from tracer.analysis.reference_sites import Level
from tracer.late_dataclasses import dataclass

EXACT, STRONG, WEAK = "exact", "strong", "weak"
CONFIDENCES = (EXACT, STRONG, WEAK)


@dataclass(frozen=True)
class Suspect:
    """Where it was taken, and what speaks against it."""

    stack: int
    birth: bool
    """It is the creator's own."""
    confidence: str
    level: Level = Level.PATH
    """At which healthy objects took references there."""
    habitual: bool = False
    """Accused by order and by nearness, which agree."""
    rivals: int = 0
    """How many other places the evidence accuses as much."""
    complete: bool = True
    """No event of the object is missing."""
