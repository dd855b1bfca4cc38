"""examples/mutants: which objects of a mutant are its own, and which live by others of their type."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "examples" / "mutants"))

from glib_program import Glib
from program import Calls
from recordings import Run
from score import LeftOut
from sites import Site

from tracer.analysis.lives import life
from tracer.model.findings import Leak, StackCount
from tracer.model.frames import Frame
from tracer.model.operations import Operation

TEST = ("test_lookup", 4583)
MADE: Calls = (("g_variant_new_from_bytes", 608), TEST)
FOUND: Calls = (("g_variant_get_child_value", 1154), ("g_variant_lookup_value", 1062), TEST)
DROPPED: Calls = (("g_variant_lookup_value", 1064), TEST)
RELEASED: Calls = (("g_variant_release_children", 306), ("g_variant_unref", 797), TEST)
HANDED: Calls = (
    ("g_variant_get_child_value", 1154), ("g_variant_get_variant", 749), ("g_variant_lookup_value", 1082), TEST,
)  # fmt: skip
RETURNED: Calls = (TEST,)


class Plain:
    """A run of the program as it is, in which objects lived as `courses` say: gets, then puts."""

    def __init__(self, *courses: tuple[tuple[Calls, ...], tuple[Calls, ...]]) -> None:
        self._courses = courses
        self._stacks: list[Calls] = [MADE]

    def calls(self, stack: int) -> Calls:
        return self._stacks[stack]

    def lives(self) -> list[tuple[str, object]]:
        return [("GVariant", self._life(gets, puts)) for gets, puts in self._courses]

    def _life(self, gets: tuple[Calls, ...], puts: tuple[Calls, ...]) -> object:
        first = len(self._stacks)
        self._stacks += [*gets, *puts]
        operations = [Operation.GET] * len(gets) + [Operation.PUT] * len(puts)
        return life(np.array(operations), np.arange(first, len(self._stacks)), 1, 0)


def leak(gets: tuple[Calls, ...], puts: tuple[Calls, ...], count: int = 3) -> Leak:
    made, taken, given = (
        tuple(StackCount(tuple(Frame(name, "app", line=line) for name, line in calls), count) for calls in some)
        for some in ((MADE,), gets, puts)
    )
    stack = made[0].stack
    return Leak("id", "reference", "GVariant", 1, "leaked", count, None, stack, True, "", gets=taken, puts=given)


def is_own(put: Calls, one: Leak, plain: Plain) -> bool:
    site = Site(0, "GVariant", put, {})
    return LeftOut(Glib(), site, cast(Run, plain)).is_own("GVariant", one)


@pytest.mark.parametrize(
    ("gets", "puts", "own"),
    [((FOUND,), (RELEASED,), True), ((FOUND,), (DROPPED,), False), ((), (), False)],
    ids=["not put where it was found", "put there", "never found"],
)
def test_an_object_whose_slot_comes_out_lives_by_another(
    gets: tuple[Calls, ...], puts: tuple[Calls, ...], own: bool
) -> None:
    assert is_own(DROPPED, leak(gets, puts), Plain()) == own


def test_what_the_program_as_it_is_puts_with_a_container_lives_by_that() -> None:
    left = leak((HANDED,), (RETURNED,))
    assert is_own(DROPPED, left, Plain())
    assert not is_own(DROPPED, left, Plain(((HANDED,), (RETURNED, RELEASED))))
    assert is_own(DROPPED, left, Plain(((HANDED,), (RETURNED, DROPPED)), ((HANDED,), (RETURNED, RELEASED))))
