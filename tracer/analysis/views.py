"""The calls of a type, counted by place at one level."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import field

from tracer.analysis.habits import Pair, PlacedLife
from tracer.analysis.reference_sites import Level
from tracer.late_dataclasses import dataclass


@dataclass
class View:
    """Places are numbered from 0 as they come; `get_example` and `put_example` give one stack of each."""

    level: Level
    gets: dict[Hashable, int] = field(default_factory=dict)
    puts: dict[Hashable, int] = field(default_factory=dict)
    put_example: dict[int, int] = field(default_factory=dict)
    get_example: dict[int, int] = field(default_factory=dict)
    seen: Counter[int] = field(default_factory=Counter)
    """References of ended objects, by get place."""
    in_order: Counter[Pair] = field(default_factory=Counter)
    certain: defaultdict[Pair, float] = field(default_factory=lambda: defaultdict(float))
    """Paired by a holder, or by one call of a function."""
    placed: list[PlacedLife] = field(default_factory=list)
    impartial: dict[Pair, float] = field(default_factory=dict)
    informed: dict[Pair, float] = field(default_factory=dict)
    _by_get: defaultdict[int, list[Pair]] | None = None
    """Set when first asked for, once all is learnt."""

    def get(self, key: Hashable, stack: int) -> int:
        """Return the number of a get place, a new one if need be."""
        number = self.gets.setdefault(key, len(self.gets))
        self.get_example.setdefault(number, stack)
        return number

    def put(self, key: Hashable, stack: int) -> int:
        """Return the number of a put place, a new one if need be."""
        number = self.puts.setdefault(key, len(self.puts))
        self.put_example.setdefault(number, stack)
        return number

    def pairs_of(self, get: int) -> Sequence[Pair]:
        """Return the pairs of a get place of which anything is known, in order of the put places' numbers."""
        if self._by_get is None:
            self._by_get = defaultdict(list)
            for pair in sorted({*self.informed, *self.in_order}):
                self._by_get[pair[0]].append(pair)
        return self._by_get.get(get, ())

    def share_in_order(self, pair: Pair) -> float:
        """Return the share of a get place's references that were given back at a put place, by order."""
        return self.in_order[pair] / max(1, self.seen[pair[0]])

    def informed_share(self, pair: Pair) -> float:
        """Return the share as learnt with order and nearness; by order alone where no life was kept that shows it."""
        share = self.informed.get(pair)
        return self.share_in_order(pair) / 2 if share is None else share
