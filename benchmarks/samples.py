"""Measured values and their ratios, round by round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median


@dataclass
class Samples:
    """One figure in several rounds; rounds may be missing. `note` says what was odd."""

    by_round: dict[int, float] = field(default_factory=dict)
    note: str = ""

    def __bool__(self) -> bool:
        return bool(self.by_round)

    @property
    def median(self) -> float:
        return median(self.by_round.values())

    @property
    def spread(self) -> tuple[float, float]:
        return min(self.by_round.values()), max(self.by_round.values())

    def over(self, other: Samples) -> Samples:
        """Return the ratios to `other`, of those rounds that both have."""
        shared = self.by_round.keys() & other.by_round.keys()
        return Samples({index: self.by_round[index] / other.by_round[index] for index in sorted(shared)
                        if other.by_round[index]})  # fmt: skip


def samples_of(*values: float) -> Samples:
    return Samples(dict(enumerate(values)))


def text_of_ratio(ratio: Samples) -> str:
    """Return median and spread, as in `1.42 (1.38-1.55)`."""
    if not ratio:
        return "-"
    low, high = ratio.spread
    middle = three_digits(ratio.median)
    return middle if len(ratio.by_round) == 1 else f"{middle} ({three_digits(low)}-{three_digits(high)})"


def three_digits(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def text_of_time(nanoseconds: float) -> str:
    for limit, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if nanoseconds >= limit:
            return f"{three_digits(nanoseconds / limit)} {unit}"
    return f"{three_digits(nanoseconds)} ns"


Figures = Mapping[str, Samples]
"""What the goals are judged by, each under a name."""
