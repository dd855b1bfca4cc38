"""Objects of CPython by their types, and the pointers into them that keep them."""

from __future__ import annotations

import numpy as np
import pytest

from tracer.model.snapshot import Records
from tracer.reachability.memory import WORD
from tracer.reachability.python_objects import kept_by_python, python_objects

TYPE, OBJECT, TUPLE, STR, INSTANCE, TEXT = 0x1000, 0x2000, 0x3000, 0x4000, 0x9010, 0x8000
WORDS = [
    (TYPE + 8, TYPE), (TYPE + 256, OBJECT), (OBJECT + 8, TYPE), (TUPLE + 8, TYPE), (TUPLE + 256, OBJECT),
    (STR + 8, TYPE), (TEXT + 8, STR), (INSTANCE + 8, TUPLE),
]  # fmt: skip
LIST = [(0x500, 0x500), (0x508, 0x500), (0x600, 0x500), (0x608, 0x500), (0x700, 0x608)]
"""An empty list whose head points at itself twice, and others that point at it."""


def words(*rows: tuple[int, int]) -> Records:
    return np.array(sorted(rows), WORD)


def test_objects_are_found_by_their_types_type() -> None:
    objects = python_objects(words(*WORDS, *LIST))
    assert {TYPE, OBJECT, TUPLE, STR, TEXT, INSTANCE} <= set(objects.tolist())
    assert python_objects(words(*WORDS)[::-1].copy()).tolist() == objects.tolist()


@pytest.mark.parametrize(
    "rows",
    [
        [], LIST, [row for row in WORDS if row[0] != TYPE + 256], [row for row in WORDS if row[0] != OBJECT + 8],
        [row if row[0] != TYPE + 256 else (TYPE + 256, TYPE) for row in WORDS],
    ],
)  # fmt: skip
def test_what_only_looks_like_a_type_is_none(rows: list[tuple[int, int]]) -> None:
    assert len(python_objects(words(*rows))) == 0


@pytest.mark.parametrize(
    ("value", "start", "kept"),
    [
        (INSTANCE, INSTANCE - 16, True), (INSTANCE, INSTANCE - 8, False), (INSTANCE + 8, INSTANCE - 16, False),
        (INSTANCE + 16, INSTANCE, False), (TEXT + 48, TEXT, True), (TEXT + 40, TEXT, True), (TEXT + 32, TEXT, True),
        (TEXT + 56, TEXT, False), (TEXT + 64, TEXT + 16, False), (0x7010, 0x7000, False),
    ],
)  # fmt: skip
def test_which_pointers_into_blocks_keep_them(value: int, start: int, kept: bool) -> None:
    objects = python_objects(words(*WORDS))
    assert kept_by_python(objects, *(np.array([at], np.uint64) for at in (value, start))).tolist() == [kept]
    assert not kept_by_python(objects[:0], *(np.array([at], np.uint64) for at in (value, start))).any()
