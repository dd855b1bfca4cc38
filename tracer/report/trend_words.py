"""Trends of entries over time, in words."""

from __future__ import annotations

from tracer.model.findings import Leak
from tracer.model.trends import Durations, Trend
from tracer.report.amounts import counted, duration, size

_MEDIAN_LEAST = 5


def turnover_sentence(leak: Leak) -> str:
    """Return what was made and freed, how long the freed lived, and how old the rest is; empty if nothing was freed."""
    lives = None if leak.trend is None else leak.trend.lives
    parts = []
    if leak.made is not None and leak.freed is not None and leak.made != leak.count:
        about = "" if leak.sample is None else "~"
        parts.append(f"made here {about}{leak.made:,}, freed {about}{leak.freed:,}")
        if lives is not None and leak.freed:
            parts[0] += f" after {_range(lives, 'about ')}"
    elif lives is not None:
        parts.append(f"{counted(lives.count, 'other')} made here ended after {_range(lives, 'about ')}")
    if parts and lives is not None and leak.trend is not None:
        parts.append(f"what is left is {_range(leak.trend.ages)} old")
    return "; ".join(parts)


def _range(durations: Durations, doubt: str = "") -> str:
    least, most = duration(durations.min_ns), duration(durations.max_ns)
    if least == most:
        return least
    if durations.median_ns is None or durations.count < _MEDIAN_LEAST:
        return f"{least} to {most}"
    return f"{least} to {most} (median {doubt}{duration(durations.median_ns)})"


def looked_at(leak: Leak) -> str:
    """Return "(16 of 18,390 frees looked at)"; empty where all were."""
    seen = sum(call.count for call in leak.freed_at)
    if leak.freed is None:
        return f"({counted(seen, 'free')} looked at)"
    about = "" if leak.sample is None else "~"
    return "" if seen >= leak.freed else f"({seen:,} of {about}{leak.freed:,} frees looked at)"


def trend_sentence(trend: Trend | None) -> str:
    """Return "growing by 42.0 a minute (4.1 KiB a minute): some of each tenth of 61.0 s stayed"; empty for no word."""
    if trend is None or trend.word is None:
        return ""
    return f"{trend.word}{_growth(trend)}: {trend.reason}"


def _growth(trend: Trend) -> str:
    if trend.growth is None:
        return ""
    sizes = trend.growth.bytes_per_minute
    of_size = "" if sizes is None else f" ({size(round(sizes))} a minute)"
    return f" by {trend.growth.count_per_minute:,.1f} a minute{of_size}"
