"""What numbers of references tell, where what one stack took is given back at one place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tracer.analysis.lives import Life
from tracer.analysis.whole_places import by_whole_places, by_whole_puts

Pairs = set[tuple[int, int]]


def life(taken: Sequence[int], given: Sequence[int]) -> Life:
    """Return a life whose gets have the stacks 10, 11, ..., and its puts 20, 21, ..."""
    return Life(
        tuple(range(10, 10 + len(taken))), np.array(taken, dtype=float), tuple(range(20, 20 + len(given))),
        np.array(given, dtype=float), np.ones((len(taken), len(given)), dtype=bool),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("taken", "given", "one_call", "meant"),
    [
        ((1, 2, 1), (1, 1, 1), set(), {1}),  # else the two went two ways
        ((1, 1, 1), (1, 1), set(), {0, 1, 2}),
        ((5, 3, 3), (5, 3), {(0, 0)}, {1, 2}),  # those of one call are as many
        ((2, 2, 2), (2, 2), {(0, 0), (1, 0)}, {0, 1, 2}),  # but which of two is the one that the call puts?
        ((3, 3), (2, 2), set(), {0, 1}),  # both lack one: nothing is told
        ((1, 1), (1, 1), set(), {0, 1}),
    ],
)
def test_gets_with_which_the_numbers_come_out(
    taken: Sequence[int], given: Sequence[int], one_call: Pairs, meant: set[int]
) -> None:
    found = by_whole_places(life(taken, given), lambda get, put: 0 if (get - 10, put - 20) in one_call else None, int)
    assert set(np.flatnonzero(found == 1).tolist()) == meant


def test_what_is_given_back_before_it_was_taken_is_not() -> None:
    one = life((1, 1, 1), (1, 1))
    one.possible[0] = False
    assert by_whole_places(one, lambda get, put: None, int).tolist()[0] == 1
    assert by_whole_places(one, lambda get, put: None, int)[1:].max() < 1


def test_what_a_line_puts_by_several_instructions_went_one_way() -> None:
    one = life((1, 2, 1), (1, 1, 1))
    found = by_whole_places(one, lambda get, put: 0 if (get, put) == (11, 20) else None, lambda put: max(put, 21))
    assert set(np.flatnonzero(found == 1).tolist()) == {0, 2}


def test_numbers_tell_among_many_places() -> None:
    """A connection of a bus has some forty, half of which each took and gave back once."""
    found = by_whole_places(life([6, 3] + [1] * 20, [3, 3] + [1] * 20), lambda get, put: None, int)
    assert np.flatnonzero(found == 1).tolist() == [0]


def test_numbers_tell_among_many_alike_of_which_one_has_no_choice() -> None:
    """Else all orders of the others are tried first."""
    one = life([6, 3] + [1] * 12, [3, 3] + [1] * 12)
    one.possible[-1] = [column == 2 for column in range(14)]
    found = by_whole_places(one, lambda get, put: None, int)
    assert np.flatnonzero(found == 1).tolist() == [0]


def test_what_has_too_many_places_is_left_alone() -> None:
    assert by_whole_places(life([2] + [1] * 40, [1] * 41), lambda get, put: None, int).min() == 1


@pytest.mark.parametrize(
    ("taken", "given", "lines", "meant"),
    [
        ((1, 1), (1, 2, 1), "abc", {1}),  # two are too many: of one line
        ((1, 1), (1, 1, 1, 1), "abac", {0, 2}),
        ((1, 1), (1, 1, 1), "abc", {0, 1, 2}),
        ((2, 1), (2, 1, 1), "abc", {1, 2}),  # else the two went two ways
    ],
)
def test_puts_with_which_the_numbers_come_out(
    taken: Sequence[int], given: Sequence[int], lines: str, meant: set[int]
) -> None:
    found = by_whole_puts(life(taken, given), lambda get, put: None, lambda put: lines[put - 20])
    assert set(np.flatnonzero(found == 1).tolist()) == meant
