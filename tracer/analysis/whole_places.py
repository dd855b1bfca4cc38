"""Places whose references go one way: what one stack took of an object is mostly given back at one place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tracer.analysis.lives import Life
from tracer.analysis.scaling import Floats

_LEAST_PLACES, _MOST_PLACES = 3, 32
_MOST_TRIALS = 256
_SPLIT = 0.2
"""How likely it is that the references of one stack went several ways, beside that they did not."""

_SEVERAL = 0.3
"""How likely it is that puts of several places were too many, or that the references of one stack went several ways."""

Depth = Callable[[int, int], int | None]
"""How many calls deeper than a put's function a get is, in one call of it; None if it is not."""


def by_whole_places(life: Life, depth: Depth, place: Callable[[int], Hashable]) -> Floats:
    """Return how likely each get is what was never put, as far as the numbers tell; shape (gets). `place`: of a put.

    Where all that lacks is of one get, and each of the others went one way, the numbers come out; else those of some
    get must have gone several ways.
    """
    life = _with_one_put_a_place(life, place)
    likely = np.ones(len(life.gets))
    missing = life.remaining
    taken, given = [round(one) for one in life.taken.tolist()], [round(one) for one in life.given.tolist()]
    if missing <= 0:
        return likely
    settled = _settle(life, taken, given, depth)
    rows = [row for row, count in enumerate(taken) if count]
    if len(life.gets) < _LEAST_PLACES or max(len(rows), sum(count > 0 for count in given)) > _MOST_PLACES:
        return likely
    fits = np.zeros(len(taken), dtype=bool)
    for row in rows:
        if taken[row] >= missing:
            rest = [*taken[:row], taken[row] - missing, *taken[row + 1 :]]
            fits[row] = _comes_out(rest, given, life.possible)
    return np.where(fits, 1.0, _SPLIT) if fits.any() and (settled or not fits.all()) else likely


def _with_one_put_a_place(life: Life, place: Callable[[int], Hashable]) -> Life:
    """Return a life whose puts of one place are one: a compiler may have made several calls of one line."""
    places: defaultdict[Hashable, list[int]] = defaultdict(list)
    for column, put in enumerate(life.puts):
        places[place(put)].append(column)
    if len(places) == len(life.puts):
        return life
    columns = list(places.values())
    return replace(
        life, puts=tuple(life.puts[some[0]] for some in columns),
        given=np.array([life.given[some].sum() for some in columns]),
        possible=np.stack([life.possible[:, some].any(axis=1) for some in columns], axis=1),
    )  # fmt: skip


def by_whole_puts(life: Life, depth: Depth, place: Callable[[int], Hashable]) -> Floats:
    """Return how likely each put is one too many, as far as the numbers tell; shape (puts). `place`: of a put.

    Where all that are too many are of one place, and what each get took went one way, the numbers come out.
    """
    likely = np.ones(len(life.puts))
    extra = -life.remaining
    taken, given = [round(one) for one in life.taken.tolist()], [round(one) for one in life.given.tolist()]
    if extra <= 0:
        return likely
    _settle(life, taken, given, depth)
    places: defaultdict[Hashable, list[int]] = defaultdict(list)
    for column, put in enumerate(life.puts):
        if given[column]:
            places[place(put)].append(column)
    rows = [row for row, count in enumerate(taken) if count]
    if max(len(rows), len(places)) > _MOST_PLACES:
        return likely
    columns = list(places.values())
    sums = [sum(given[column] for column in some) for some in columns]
    possible = np.stack([life.possible[:, some].any(axis=1) for some in columns], axis=1)
    fits = np.zeros(len(life.puts), dtype=bool)
    for number, some in enumerate(columns):
        if sums[number] >= extra:
            rest = [*sums[:number], sums[number] - extra, *sums[number + 1 :]]
            fits[some] = _comes_out(taken, rest, possible)
    return np.where(fits, 1.0, _SEVERAL) if fits.any() else likely


def _settle(life: Life, taken: list[int], given: list[int], depth: Depth) -> bool:
    """Take out the gets and puts of one call that are as many, where there are as many such gets as puts.

    Return whether there were any."""
    pairs = [
        (row, column)
        for row, get in enumerate(life.gets)
        for column, put in enumerate(life.puts)
        if taken[row] == given[column] and depth(get, put) is not None
    ]
    settled = False
    for rows, columns in _components(pairs):
        if len(rows) == len(columns):
            settled = True
            for row in rows:
                taken[row] = 0
            for column in columns:
                given[column] = 0
    return settled


def _components(pairs: Sequence[tuple[int, int]]) -> list[tuple[set[int], set[int]]]:
    """Return the rows and columns that are connected by pairs."""
    found: list[tuple[set[int], set[int]]] = []
    for row, column in pairs:
        rows, columns = {row}, {column}
        apart = []
        for one in found:
            if row in one[0] or column in one[1]:
                rows |= one[0]
                columns |= one[1]
            else:
                apart.append(one)
        found = [*apart, (rows, columns)]
    return found


def _comes_out(taken: list[int], given: list[int], possible: npt.NDArray[np.bool_]) -> bool:
    """Tell whether the references of each get can all be given back at one put.

    Of gets that are as many those with the least choice go first, each to where the least room is: else one that has no
    choice would fail in each order of all that are alike.
    """
    able = {
        row: [column for column, room in enumerate(given) if room >= count and possible[row, column]]
        for row, count in enumerate(taken) if count
    }  # fmt: skip
    rows = sorted(able, key=lambda row: (-taken[row], len(able[row])))
    left = list(given)
    trials = 0

    def place(index: int) -> bool:
        nonlocal trials
        trials += 1
        if index == len(rows) or trials > _MOST_TRIALS:
            return index == len(rows)
        row = rows[index]
        for column in sorted(able[row], key=left.__getitem__):
            if left[column] >= taken[row]:
                left[column] -= taken[row]
                if place(index + 1):
                    return True
                left[column] += taken[row]
        return False

    return place(0)
