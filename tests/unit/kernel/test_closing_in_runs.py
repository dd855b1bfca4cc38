"""Closing in runs: what an ended process had open is closed by few calls, and nothing else."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from tracer.kernel.links import Attacher, _runs


@pytest.mark.parametrize(
    ("numbers", "expected"), [((), []), ((5,), [(5, 6)]), ((7, 5, 6, 9, 3), [(3, 4), (5, 8), (9, 10)])]
)
def test_numbers_that_follow_each_other_are_one(numbers: tuple[int, ...], expected: list[tuple[int, int]]) -> None:
    assert list(_runs(numbers)) == expected


def test_what_lies_between_stays_open() -> None:
    maps = SimpleNamespace(fds={"BY_EVENTS": -1}, view=lambda *_: None)
    nothing: Any = SimpleNamespace(hold_of_tree=None)
    attacher = Attacher(nothing, nothing, maps)  # type: ignore[arg-type]
    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(5)]
    attacher._close_soon([(1, [fds[0], fds[1]]), (2, [fds[4], fds[3]])])
    attacher._closer.shutdown(wait=True)
    os.fstat(fds[2])
    for closed in (0, 1, 3, 4):
        with pytest.raises(OSError):
            os.fstat(fds[closed])
    os.close(fds[2])
