"""What refleak set out to reach, beside what a run measured."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.samples import Figures, Samples, text_of_ratio, three_digits
from benchmarks.tables import Table


@dataclass(frozen=True)
class Goal:
    """A limit for one figure: at most `limit`, or with `at_least` no less.

    With `or_in_noise` it is enough that some round was not above: what differs less than rounds do is not measurable.
    """

    title: str
    figure: str
    limit: float
    at_least: bool = False
    or_in_noise: bool = False

    def verdict(self, samples: Samples | None) -> str:
        if not samples:
            return "not measured"
        value = samples.spread[0] if self.or_in_noise else samples.median
        reached = value >= self.limit if self.at_least else value <= self.limit
        if reached:
            return "reached"
        return f"missed, by {100 * abs(value / self.limit - 1):.0f} %"

    def row(self, figures: Figures) -> list[str]:
        samples = figures.get(self.figure)
        wanted = f"{'at least' if self.at_least else 'at most'} {three_digits(self.limit)}"
        return [self.title, wanted, text_of_ratio(samples) if samples else "-", self.verdict(samples)]


GOALS = (
    Goal("malloc+free pair over its floor, depth 5", "pair/floor 5", 1.5),
    Goal("malloc+free pair over its floor, depth 20", "pair/floor 20", 2.0),
    Goal("bcc memleak's pair over refleak's, the worst depth", "memleak/refleak", 8.0, at_least=True),
    Goal("get+put pair through the nop stub over its floor", "nop/floor", 2.0),
    Goal("the same over that through a stub without the nop", "nop/plain", 0.5),
    Goal("malloc+free pair with --preload over that without", "preload/without", 0.55),
    Goal("unrelated process, malloc+free pair", "bystander pair --no-follow-forks", 1.0, or_in_noise=True),
    Goal("unrelated process, fork+exec", "bystander fork --no-follow-forks", 1.0, or_in_noise=True),
    Goal("unrelated process, malloc+free pair, forks followed", "bystander pair --follow-forks", 1.0, or_in_noise=True),
    Goal("unrelated process, fork+exec, forks followed", "bystander fork --follow-forks", 1.0, or_in_noise=True),
    Goal("seconds from exit to the report of 1,000,000 live blocks", "report seconds", 5.0),
    Goal("MiB at most while doing so", "report MiB", 400.0),
    Goal("seconds from the command to the target's first instruction", "start-up", 1.0),
    Goal("seconds from -p to the probes in a process with 300 libraries, cache warm", "attach", 3.0),
    Goal("seconds for the names of 10,000 addresses, the slowest library", "symbolization", 3.0),
    Goal("events per second without loss", "events without loss", 200_000, at_least=True),
)


def goals_table(figures: Figures, *, whole: bool) -> Table:
    """Return the table of all goals, or unless `whole` of those that were measured."""
    rows = [goal.row(figures) for goal in GOALS if whole or figures.get(goal.figure)]
    return Table("What was to be reached", ["goal", "wanted", "measured", ""], rows)
