"""Rates at which puts of a place are one too many: of all objects that were put too often, and of healthy ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from tracer.analysis.habits import likely
from tracer.analysis.lives import Life
from tracer.analysis.scaling import Floats
from tracer.late_dataclasses import dataclass

_ROUNDS = 6
_START = 0.5
_UNSEEN = 0.02
"""The rate of a place of which nothing is seen, which counts as much as one put."""


@dataclass(frozen=True)
class PutTooOften:
    """The life of an object that was put too often, and how likely its references are given back at its puts."""

    life: Life
    weights: Floats
    numbers: Floats
    """How likely each of its puts is one too many by the numbers of its gets and puts, shape (puts)."""


class PutRates:
    """The share of the puts of a place that are one too many.

    Objects that are put too often mostly share one cause: a place that all of them went through, and few that ended
    well. So what is likely of one tells of the others: expectation maximisation, as of habits.
    """

    def __init__(
        self, place: Callable[[int], Hashable], healthy: Sequence[Life], broken: Sequence[PutTooOften]
    ) -> None:
        """`place`: of the stack of a put."""
        self._place = place
        self._healthy = self._puts(healthy)
        put = self._puts([one.life for one in broken])
        self._rate = {key: self._share(_START * count, count, key) for key, count in put.items()}
        for _ in range(_ROUNDS):
            extra: defaultdict[Hashable, float] = defaultdict(float)
            for one in broken:
                found = likely(one.weights, one.life, self.of(one.life) * one.numbers)[2]
                for stack, share in zip(one.life.puts, found.tolist(), strict=True):
                    extra[place(stack)] += share
            self._rate = {key: self._share(extra[key], count, key) for key, count in put.items()}

    def of(self, life: Life) -> Floats:
        """Return how likely each put of a life is one too many, shape (puts)."""
        return np.array([self._rate.get(self._place(stack), _UNSEEN) for stack in life.puts], dtype=np.float64)

    def known(self, put: int) -> float:
        """Return how often objects that ended well were put there."""
        return self._healthy[self._place(put)]

    def _share(self, extra: float, put: float, key: Hashable) -> float:
        return (extra + _UNSEEN) / (max(put, extra) + self._healthy[key] + 1)

    def _puts(self, lives: Sequence[Life]) -> defaultdict[Hashable, float]:
        counted: defaultdict[Hashable, float] = defaultdict(float)
        for one in lives:
            for stack, given in zip(one.puts, one.given.tolist(), strict=True):
                counted[self._place(stack)] += given * one.objects
        return counted
