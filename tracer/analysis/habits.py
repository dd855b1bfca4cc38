"""Habits of a type: where references taken at a place are usually given back, learnt from objects that ended.

The puts of an object do not say which get each gives back. But an object with gets {A, B} and puts {a, b}, and
another with {A} and {a}, say together that A goes with a. Over all lives that is a contingency table of which only
the margins of each part are known; it is filled by expectation maximisation (Dempster, Laird, Rubin 1977), the
expectation being a matrix scaling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np
import numpy.typing as npt

from tracer.analysis.groups import Indices
from tracer.analysis.lives import Life
from tracer.analysis.scaling import Floats, scaled
from tracer.late_dataclasses import dataclass

_ROUNDS = 4
_ITERATIONS = 200
_SETTLED = 2e-4
_FLOOR = 1e-3
LEAST_NEVER = 0.02
_IMPOSSIBLE = 1e-6
_BY_FAR = 25
MOST_PLACES = 24

Pair = tuple[int, int]
"""Number of a get place, number of a put place."""


@dataclass(frozen=True)
class PlacedLife:
    """A life, with the number of the place of each of its gets and of its puts."""

    life: Life
    gets: tuple[int, ...]
    puts: tuple[int, ...]

    def is_short(self) -> bool:
        return len(self.gets) <= MOST_PLACES and len(self.puts) <= MOST_PLACES

    def without_the_settled(self) -> PlacedLife:
        """Return it without the places of which no reference is left to be paired."""
        rows, columns = np.flatnonzero(self.life.taken), np.flatnonzero(self.life.given)
        life = replace(
            self.life,
            gets=tuple(self.life.gets[row] for row in rows), taken=self.life.taken[rows],
            puts=tuple(self.life.puts[column] for column in columns), given=self.life.given[columns],
            possible=self.life.possible[np.ix_(rows, columns)],
        )  # fmt: skip
        return PlacedLife(life, tuple(self.gets[row] for row in rows), tuple(self.puts[column] for column in columns))


@dataclass(frozen=True)
class Habits:
    """What becomes of the references that are taken at one place, in shares of all."""

    given: Mapping[Pair, float] = field(default_factory=dict)
    """Given back at a put place, per pair that occurs; of a get place less than 1 in all where some never were."""
    never: Mapping[int, float] = field(default_factory=dict)
    """Never given back, per get place; at least LEAST_NEVER."""


def learn(
    lives: Sequence[PlacedLife], prior: Callable[[Pair], float], known: Mapping[Pair, float]
) -> Habits:  # fmt: skip
    """Return what becomes of references, by the place that takes them.

    `prior`: where to start from; it decides where the lives do not. `known`: references that are paired for
    certain. Lives with more than MOST_PLACES places of which references are left to be paired are passed over.
    """
    lives = [one if one.is_short() else one.without_the_settled() for one in lives]
    lives = [one for one in lives if one.puts and one.is_short()]
    if not lives:
        return Habits()
    table = _table(lives)
    pairs, place = np.unique(np.stack(table.coded, axis=1), axis=0, return_inverse=True)
    place = place.reshape(-1)
    gets, get = np.unique(pairs[:, 0], return_inverse=True)
    never = np.searchsorted(gets, table.never_coded)
    named: list[Pair] = [(int(g), int(p)) for g, p in pairs.tolist()]
    start = _shares(np.array([prior(pair) for pair in named], dtype=np.float64), get)
    certain = np.array([known.get(pair, 0) for pair in named], dtype=np.float64)
    share, never_share = start, np.full(int(get.max()) + 1, LEAST_NEVER)
    for _ in range(_ITERATIONS):
        weights: Floats = np.zeros(table.never.shape)
        weights[table.never] = never_share[never]
        weights[table.real] = share[place] * table.possible[table.real]
        found = scaled(weights, table.taken, table.given, _ROUNDS) * table.objects[:, None, None]
        expected = np.bincount(place, found[table.real], minlength=len(named)) + certain
        kept = np.bincount(never, found[table.never], minlength=int(get.max()) + 1).astype(np.float64)
        before, share = share, _shares(expected + _FLOOR * start, get, kept)
        never_share = np.maximum(kept / np.maximum(np.bincount(get, expected) + kept, 1e-12), LEAST_NEVER)
        if float(np.abs(share - before).max()) < _SETTLED:
            break
    given = dict(zip(named, share.tolist(), strict=True))
    return Habits(given, dict(zip(gets.tolist(), never_share.tolist(), strict=True)))


def _shares(counts: Floats, get: Indices, never: Floats | float = 0) -> Floats:
    total = np.bincount(get, counts) + never
    shares: Floats = np.maximum(counts / np.maximum(total, 1e-12)[get], _FLOOR)
    return shares


@dataclass(frozen=True)
class _Table:
    """Lives side by side, padded. The last column of each life is for references never given back."""

    coded: tuple[Indices, Indices]
    """Numbers of the places of each real pair, in the order of `real`."""
    real: npt.NDArray[np.bool_]
    """Mask, shape (lives, R, C): pairs of a get and a put of the same life."""
    never: npt.NDArray[np.bool_]
    """Mask, same shape: real gets in the last column of each life."""
    never_coded: Indices
    """Numbers of the get places, in the order of `never`."""
    possible: Floats
    taken: Floats
    given: Floats
    objects: Floats


def _table(lives: Sequence[PlacedLife]) -> _Table:
    height = max(len(one.gets) for one in lives)
    width = max(len(one.puts) for one in lives) + 1
    shape = (len(lives), height, width)
    real, never, possible = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool), np.zeros(shape)
    taken, given = np.zeros(shape[:2]), np.zeros((shape[0], width))
    row, column = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for number, one in enumerate(lives):
        gets, puts = len(one.gets), len(one.puts)
        real[number, :gets, :puts] = True
        row[number, :gets] = np.array(one.gets)[:, None]
        column[number, :, :puts] = one.puts
        possible[number, :gets, :puts] = np.maximum(one.life.possible, _IMPOSSIBLE)
        never[number, :gets, -1] = True
        taken[number, :gets], given[number, :puts] = one.life.taken, one.life.given
        given[number, -1] = max(0, one.life.remaining)
    objects = np.array([one.life.objects for one in lives], dtype=np.float64)
    return _Table((row[real], column[real]), real, never, row[never], possible, taken, given, objects)


def likely(
    weights: Floats, life: Life, extra: Floats | None = None, never: Floats | None = None
) -> tuple[Floats, Floats, Floats]:
    """Match one life; return (pairs, never put per get, never got per put).

    `weights`: how likely a reference of each get is given back at each put, shape (gets, puts). `extra`: how likely
    each put is of none, shape (puts). `never`: how much likelier than others a reference of each get is never given
    back, shape (gets).
    """
    gets, puts = weights.shape
    # Squared: scaling spreads the odds of one exchange over both of its pairs.
    whole = np.full((gets + 1, puts + 1), LEAST_NEVER**2)
    if extra is not None:
        whole[gets, :puts] = extra**2
    if never is not None:
        whole[:gets, puts] *= never**2
    whole[:gets, :puts] = np.where(life.possible, weights**2, weights**2 * _IMPOSSIBLE)
    whole[gets, puts] = 0
    certain = _certain(whole[:gets, :puts], life)
    taken = np.append(life.taken - certain.sum(axis=1), max(0, -life.remaining))
    given = np.append(life.given - certain.sum(axis=0), max(0, life.remaining))
    pairs = scaled(whole, taken, given, 1000, exact=True)
    return pairs[:gets, :puts] + certain, pairs[:gets, puts], pairs[gets, :puts]


def _certain(weights: Floats, life: Life) -> Floats:
    """Return pairs that need no weighing: all but one of each get and put that are by far each other's likeliest.

    Hundreds of alike would drown the one that is missing in the number of ways to exchange them.
    """
    gets, puts = weights.shape
    certain = np.zeros((gets, puts))
    if not gets or not puts:
        return certain
    row, column = weights.argmax(axis=1), weights.argmax(axis=0)
    for get in range(gets):
        put = int(row[get])
        rest = np.concatenate([np.delete(weights[get], put), np.delete(weights[:, put], get)])
        if column[put] == get and weights[get, put] >= _BY_FAR * rest.max(initial=0):
            certain[get, put] = max(0, min(life.taken[get], life.given[put]) - 1)
    return certain
