"""Interleaved rounds: each method once in a round, so that what the machine does meanwhile meets all of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.commands import Unmeasured
from benchmarks.methods import Method, Outcome
from benchmarks.samples import Samples
from benchmarks.settings import Settings


@dataclass
class Row:
    """What one method gave: samples for each of the figures, and why there are no more."""

    samples: list[Samples]
    reason: str = ""
    notes: list[str] = field(default_factory=list)
    spent_seconds: float = 0.0
    rounds: int = 0

    def may_go_on(self, settings: Settings) -> bool:
        """Tell whether another round fits into what a method is allowed."""
        if self.reason or not self.rounds:
            return not self.reason
        if time.monotonic() > settings.hurry_at:
            return False
        return self.spent_seconds * (self.rounds + 1) / self.rounds <= settings.allowance_seconds

    def take(self, index: int, values: Sequence[float], note: str) -> None:
        if len(values) < len(self.samples):
            raise Unmeasured("printed too few numbers")
        for samples, value in zip(self.samples, values, strict=False):
            samples.by_round[index] = value
        if note:
            self.notes.append(note)
        self.rounds += 1


Once = Callable[[Method], tuple[Sequence[float], Outcome]]


def in_turn(methods: Sequence[Method], once: Once, figures: int, settings: Settings, title: str) -> dict[str, Row]:
    """Run all methods in turn, round by round; return a Row by the method's name.

    `once` gives `figures` values of one run. A method that fails is left out from then on, with the reason.
    """
    rows = {method.name: Row([Samples() for _ in range(figures)]) for method in methods}
    for index in range(settings.rounds):
        for method in methods:
            row = rows[method.name]
            if not row.may_go_on(settings):
                continue
            print(f"{title}: round {index + 1}, {method.name}", file=sys.stderr, flush=True)
            began = time.monotonic()
            try:
                values, outcome = once(method)
                row.take(index, values, outcome.note)
            except Unmeasured as reason:
                row.reason = str(reason)
            row.spent_seconds += time.monotonic() - began
    return rows
