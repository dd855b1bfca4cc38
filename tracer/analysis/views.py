"""The calls of a type, counted by place at one level."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field

from tracer.analysis.habits import LEAST_NEVER, Habits, Pair, PlacedLife
from tracer.analysis.reference_sites import Level
from tracer.late_dataclasses import dataclass

_TRUST: Mapping[Level, float] = {Level.PATH: 1, Level.CALLS: 0.3, Level.CALL: 0.1, Level.FUNCTION: 0.03}
_OUTSTANDING = 0.02
"""For how many references of ended objects one counts that only outstanding objects took."""
_NEVER_TRUST = 0.1
"""What counts of what outstanding objects show to be never given back."""


@dataclass(frozen=True)
class PutPlace:
    """Where references taken at one place are usually given back, and the share of them that are."""

    stack: int
    share: float


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
    impartial: Habits = field(default_factory=Habits)
    """Going only by what objects took and gave back, and by where the code keeps it."""
    informed: Habits = field(default_factory=Habits)
    """Going by order and nearness as well."""
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

    def trust(self, get: int) -> float:
        """Return what the habits of a get place count beside those of other levels: those of ended objects the more,
        and what only outstanding ones did is hardly known."""
        seen = self.seen[get] or _OUTSTANDING
        return _TRUST[self.level] * seen / (seen + 1)

    def never(self, get: int) -> float:
        """Return what counts of the share of a get place's references that are never given back, beyond what is said of
        any: where ended objects took some there, what these did with them tells more."""
        if self.seen[get]:
            return 0.0
        return _TRUST[self.level] * _NEVER_TRUST * (self.informed.never.get(get, LEAST_NEVER) - LEAST_NEVER)

    def pairs_of(self, get: int) -> Sequence[Pair]:
        """Return the pairs of a get place of which anything is known, in order of the put places' numbers."""
        if self._by_get is None:
            self._by_get = defaultdict(list)
            for pair in sorted({*self.informed.given, *self.in_order}):
                self._by_get[pair[0]].append(pair)
        return self._by_get.get(get, ())

    def share_in_order(self, pair: Pair) -> float:
        """Return the share of a get place's references that were given back at a put place, by order."""
        return self.in_order[pair] / max(1, self.seen[pair[0]])

    def share(self, pair: Pair, impartial: bool) -> float:
        """Return the share of a get place's references that are given back at a put place."""
        return self.impartial.given.get(pair, 0) if impartial else self.informed_share(pair)

    def informed_share(self, pair: Pair) -> float:
        """Return the share as learnt with order and nearness; by order alone where no life was kept that shows it."""
        share = self.informed.given.get(pair)
        return self.share_in_order(pair) / 2 if share is None else share
