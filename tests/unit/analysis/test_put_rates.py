"""How often puts of a place are one too many, learnt from several objects."""

from __future__ import annotations

import numpy as np

from tracer.analysis.lives import Life
from tracer.analysis.put_rates import PutRates, PutTooOften


def life(*puts: int, objects: float = 1) -> Life:
    """Return what took as many as it gave back, or too few by one: only the first of two."""
    return Life(
        (1,), np.array([1.0]), puts, np.ones(len(puts)), np.ones((1, len(puts)), dtype=bool), objects,
    )  # fmt: skip


def broken(*puts: int) -> PutTooOften:
    return PutTooOften(life(*puts), np.ones((1, len(puts))), np.ones(len(puts)))


def test_what_all_went_through_is_suspected_and_what_healthy_ones_went_through_is_not() -> None:
    rates = PutRates(str, [life(30, objects=6)], [broken(10, 20), broken(10, 40), broken(30, 10)])
    by_put = dict(zip((10, 20, 30, 40), rates.of(life(10, 20, 30, 40)).tolist(), strict=True))
    assert by_put[10] > 0.5 > 3 * max(by_put[20], by_put[30], by_put[40])
    assert rates.known(30) == 6 and rates.known(10) == 0


def test_where_one_object_is_all_there_is_its_puts_are_alike() -> None:
    first, second = PutRates(str, [], [broken(10, 20)]).of(life(10, 20)).tolist()
    assert abs(first - second) < 0.01


def test_a_place_is_what_its_key_is() -> None:
    rates = PutRates(lambda put: put // 10, [], [broken(10, 25), broken(11, 31), broken(12, 44)])
    assert rates.of(life(19, 20))[0] > 0.5 > rates.of(life(19, 20))[1]
