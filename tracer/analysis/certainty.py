"""Certainty of an accusation, as measured: how often the accused reference is the right one.

Calibrated on mutants of perf, by one half of the places; the other half is only scored (docs/pairing.md).
"""

from __future__ import annotations

from tracer.analysis.suspect import EXACT, STRONG

_EXACT, _STRONG = 1.0, 0.98
_WEAK_LEAST, _WEAK_MOST = 0.3, 0.8
"""Of a weak one of which the evidence leaves nothing, and of one of which it leaves no doubt."""


def probability(confidence: str, share: float) -> float:
    """Return how likely a reference was never put. `share`: of it that the evidence leaves unpaired, 0 to 1."""
    if confidence == EXACT:
        return _EXACT
    if confidence == STRONG:
        return _STRONG
    return round(share * (_WEAK_LEAST + (_WEAK_MOST - _WEAK_LEAST) * share), 2)
