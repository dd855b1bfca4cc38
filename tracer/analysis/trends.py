"""Growing, bounded or one-off: what the births of the survivors and the lives of the freed tell.

docs/verdicts.md says the same for users. A word is given only where the evidence is enough for it; the limits stand
below.
"""

from __future__ import annotations

from tracer.analysis.births import TENTHS, Births
from tracer.analysis.turnover import Turnover
from tracer.model.trends import BOUNDED, GROWING, ONE_OFF, Growth, Trend

SHORTEST_NS = 2_000_000_000
"""Nothing is said of a process that was traced for less."""
_GROWING_LEAST = 10
"""Survivors that were made after the first tenth."""
_GROWING_TENTHS = 8
"""Of the nine after the first."""
_BOUNDED_LEAST = 20
"""Made in all."""
_MINUTE_NS = 60_000_000_000


def trend(births: Births, turnover: Turnover | None, has_size: bool = True) -> Trend:
    """Judge one entry. `turnover`: None where what was freed is not known, which leaves fewer words possible."""
    lives = None if turnover is None else turnover.lives
    plain = Trend(None, "", births.ages, lives, None if turnover is None else turnover.peak)
    if births.end_ns - births.start_ns < SHORTEST_NS:
        return plain
    for judge in (_one_off, _bounded, _growing):
        found = judge(births, turnover)
        if found is not None:
            word, reason = found
            growth = _growth(births, has_size) if word == GROWING else None
            return Trend(word, reason, plain.ages, lives, plain.peak, growth)
    return plain


def _one_off(births: Births, _: Turnover | None) -> tuple[str, str] | None:
    """All survivors were made within a tenth of the time, and none in the latter half of it."""
    time = births.end_ns - births.start_ns
    took, since = births.last_ns - births.first_ns, births.end_ns - births.last_ns
    if took * TENTHS > time or since * 2 < time:
        return None
    how = "made once" if births.count == 1 else f"all made within {_seconds(took)}" if took else "all made at once"
    return ONE_OFF, f"{how}, and none that stayed in the {_seconds(since)} since"


def _bounded(births: Births, turnover: Turnover | None) -> tuple[str, str] | None:
    """Half of all were made without more being alive than before, and no survivor is older than the freed became."""
    if turnover is None or turnover.lives is None or turnover.peak is None:
        return None
    time = births.end_ns - births.start_ns
    enough = turnover.made >= _BOUNDED_LEAST and turnover.freed * 2 >= turnover.made
    level = turnover.since_risen * 2 >= turnover.made
    young = births.ages.max_ns <= turnover.lives.max_ns
    goes_on = (births.end_ns - births.last_ns) * 4 <= time
    if not (enough and level and young and goes_on):
        return None
    return BOUNDED, (
        f"never more than {turnover.peak:,} at once, while {turnover.since_risen:,} of {turnover.made:,} were made;"
        " no survivor is older than freed ones became"
    )


def _growing(births: Births, turnover: Turnover | None) -> tuple[str, str] | None:
    """Survivors were made all through the time, and half of them outlived nine in ten of the freed."""
    later = births.tenths[1:]
    spread = sum(1 for count in later if count)
    early = (births.first_ns - births.start_ns) * 4 <= births.end_ns - births.start_ns
    if sum(later) < _GROWING_LEAST or spread < _GROWING_TENTHS or not early:
        return None
    if turnover is not None and turnover.freed:
        usual = turnover.life_quantile(0.9)
        if usual is None or (births.ages.median_ns or 0) <= usual:
            return None
    span = births.end_ns - births.first_ns
    return GROWING, f"some of each tenth of {_seconds(span)} stayed" if spread == TENTHS - 1 else (
        f"some of {spread + 1} in {TENTHS} tenths of {_seconds(span)} stayed"
    )


def _growth(births: Births, has_size: bool) -> Growth:
    minutes = (births.end_ns - births.first_ns) * (TENTHS - 1) / TENTHS / _MINUTE_NS
    return Growth(sum(births.tenths[1:]) / minutes, births.late_bytes / minutes if has_size else None)


def _seconds(time_ns: int) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6)):
        if time_ns >= size:
            return f"{time_ns / size:,.1f} {unit}"
    return f"{time_ns / 1e3:,.0f} us"
