"""Options of an analysis."""

from __future__ import annotations

from tracer.analysis.suppression import Rule
from tracer.late_dataclasses import dataclass


@dataclass(frozen=True)
class AnalysisOptions:
    suppressions: tuple[Rule, ...] = ()
    """The user's own, tried before the built-in ones."""
    default_suppressions: bool = True
    """Whether the one-off allocations of the runtime libraries are set aside."""
    samples: int = 10
    """Most instances kept per entry."""
    older_ns: int = 0
    """Only what is at least so old at the end of its process, or of the trace, is listed."""
    freed_stacks: bool = False
    """Whether to list what was freed by where it was made."""
    sums_inherited: bool = False
    """Whether to tell only how much each forked child has of its parents, where that is many thousand blocks."""
