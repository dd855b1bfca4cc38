"""Certainty of an accusation, as measured: how often the accused reference is the right one.

Calibrated on mutants of perf, by one half of the places; the other half is only scored (docs/pairing.md).
"""

from __future__ import annotations

from tracer.analysis.suspect import EXACT, STRONG

_EXACT, _STRONG = 1.0, 0.98
_WEAK = 0.95
"""Of a weak one of which the evidence leaves no doubt."""


def probability(confidence: str, share: float) -> float:
    """Return how likely a reference was never put. `share`: of it that the evidence leaves unpaired, 0 to 1."""
    if confidence == EXACT:
        return _EXACT
    if confidence == STRONG:
        return _STRONG
    return round(_WEAK * share, 2)
