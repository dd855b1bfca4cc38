"""Functions that hand up to their callers the references that they take, told from those that keep them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from tracer.analysis.function_words import handing_by_name

_PRIOR = 1.0
"""For how many references what is known beforehand of a function counts."""

Call = tuple[str, int]
"""Function and line."""
Counts = defaultdict[str, float]
CallCounts = defaultdict[Call, float]


def _counts() -> Counts:
    return defaultdict(float)


def _call_counts() -> CallCounts:
    return defaultdict(float)


@dataclass
class HandUps:
    """References counted by what became of them, each weighted by how many objects lived so.

    A get is told by its innermost call, beyond the wrappers.
    """

    handed: Counts = field(default_factory=_counts)
    """By function: handed up to a caller that gave it back itself."""
    kept: Counts = field(default_factory=_counts)
    """By function: given back by that very function, or not within its call."""
    together: defaultdict[tuple[Call, Call], float] = field(default_factory=lambda: defaultdict(float))
    """By get and put: pairs within one call."""
    decided: CallCounts = field(default_factory=_call_counts)
    """By get: of healthy objects, or paired within one call."""
    paired: CallCounts = field(default_factory=_call_counts)
    """By get: paired within one call."""
    beside: CallCounts = field(default_factory=_call_counts)
    """By get: taken beside one that was handed up."""
    taken: CallCounts = field(default_factory=_call_counts)
    """By get: all."""
    inside: CallCounts = field(default_factory=_call_counts)
    """By put: of what the same call took."""
    outside: CallCounts = field(default_factory=_call_counts)
    """By put: of what no call took that the put may be part of."""

    def handing(self, function: str, birth: bool) -> float:
        """Return how likely a function hands up what it took, or made."""
        up = self.handed[function]
        return (up + _PRIOR * handing_by_name(function, birth)) / (up + self.kept[function] + _PRIOR)

    def belonging(self, get: Call, put: Call) -> float:
        """Return how likely what this get took is given back by this put, of those within one call."""
        return (self.together[get, put] + _PRIOR) / (self.decided[get] + _PRIOR)

    def habit(self, get: Call) -> float:
        """Return the share of a get's references that one call took and gave back."""
        return self.paired[get] / (self.taken[get] + _PRIOR)

    def putting_own(self, put: Call) -> float:
        """Return the share of a put's references that the same call took."""
        inside = self.inside[put] + _PRIOR
        return inside / (inside + self.outside[put])
