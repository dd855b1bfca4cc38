"""Functions that hand up to their callers the references that they take, told from those that keep them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field

from tracer.analysis.function_words import handing_by_name
from tracer.late_dataclasses import dataclass

_STORED = 0.2
"""Of what is handed up, the share that the caller does not give back itself."""
_PRIOR = 1.0
"""For how many references what is known beforehand of a function counts."""
_DOUBT = 0.1
"""The same, where an object itself shows what its put is of."""

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

    A get is told by its innermost call, beyond the wrappers; what becomes of it by the call that it came to: all that
    is made by one constructor would be one get.
    """

    handed: Counts = field(default_factory=_counts)
    """By function: handed up to a caller that gave it back itself."""
    kept: Counts = field(default_factory=_counts)
    """By function: given back by that very function."""
    elsewhere: Counts = field(default_factory=_counts)
    """By function: taken by it, and given back neither within its call nor within one of its callers."""
    together: defaultdict[tuple[Call, Call], float] = field(default_factory=lambda: defaultdict(float))
    """By the call in the put's function that a reference came to, and the put: pairs within one call."""
    apart: defaultdict[tuple[Call, Call], float] = field(default_factory=lambda: defaultdict(float))
    """By get and put: of puts outside of its call, where no other get can be meant."""
    decided: CallCounts = field(default_factory=_call_counts)
    """By call: references that came to it, and were paired there or given back outside of it."""
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
        """Return how likely a function hands up what it took, or made, as far as is seen: else it counts as kept."""
        up, kept = self._counted(function, birth)
        return up / (up + kept + self.elsewhere[function])

    def reaching(self, function: str, birth: bool) -> float:
        """Return how likely what a function took, or made, reaches its caller, who may keep it as well."""
        up, kept = self._counted(function, birth)
        elsewhere = self.elsewhere[function]
        stored = up * _STORED / (up * _STORED + kept)
        return (up + elsewhere * stored) / (up + kept + elsewhere)

    def _counted(self, function: str, birth: bool) -> tuple[float, float]:
        by_name = _PRIOR * handing_by_name(function, birth)
        return self.handed[function] + by_name, self.kept[function] + _PRIOR - by_name

    def giving_apart(self, get: Call, put: Call) -> float:
        """Return the share of a get's references that are known to be given back by this put outside of its call."""
        return self.apart[get, put] / (self.taken[get] + _PRIOR)

    def belonging(self, call: Call, put: Call) -> float:
        """Return how likely what came to this call is given back by this put of the same function."""
        return (self.together[call, put] + _PRIOR) / (self.decided[call] + _PRIOR)

    def habit(self, get: Call) -> float:
        """Return the share of a get's references that one call took and gave back."""
        return self.paired[get] / (self.taken[get] + _PRIOR)

    def own_share(self, put: Call, here: float) -> float:
        """Return the share of a put's references that the same call took, as far as is seen. `here`: of those
        references, such as an object shows of which nothing is learnt."""
        inside = self.inside[put] + here
        return inside / (inside + self.outside[put] + _DOUBT)

    def putting_own(self, put: Call) -> float:
        """Return the share of a put's references that the same call took."""
        inside = self.inside[put] + _PRIOR
        return inside / (inside + self.outside[put])
