"""Trends of entries over the time of a trace."""

from __future__ import annotations

from tracer.late_dataclasses import dataclass

GROWING, BOUNDED, ONE_OFF = "growing", "bounded", "one-off"


@dataclass(frozen=True, slots=True)
class Durations:
    """A set of durations, ns."""

    count: int
    min_ns: int
    median_ns: int | None
    """None where it is not known. Of lives it is about right: within the factor of two of its bin."""
    max_ns: int


@dataclass(frozen=True, slots=True)
class Growth:
    """What stayed of what was made after the first tenth of the time, per minute."""

    count_per_minute: float
    bytes_per_minute: float | None
    """None for what has no size."""


@dataclass(frozen=True, slots=True)
class Trend:
    """How what is outstanding came about. docs/verdicts.md defines the words."""

    word: str | None
    """GROWING, BOUNDED or ONE_OFF; None where the evidence is too thin, or fits none."""
    reason: str
    """What the word rests on; empty without one."""
    ages: Durations
    """Of what is outstanding."""
    lives: Durations | None = None
    """Of what was freed; None where nothing was, or it is not known."""
    peak: int | None = None
    """Most that was alive at once; None where it is not known."""
    growth: Growth | None = None
    """Of what grows only."""
