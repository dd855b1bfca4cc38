"""Calls of which it is asked what they pass."""

from __future__ import annotations

from hand_made import snapshot
from simulated import Simulation

from tracer.model.records import FRAME_EXACT


def test_the_innermost_calls_of_outstanding_types_come_first() -> None:
    made = Simulation()
    thing = made.create("main:1 make:2")
    made.get(thing, "main:3 take:4")
    names = [made.code.symbols[key][0].function for key in made.snapshot().reference_calls]
    assert sorted(names[:2]) == ["make", "take"]
    assert names[2:] == ["main", "main"]


def test_instructions_that_call_nothing_are_not_asked() -> None:
    made = Simulation()
    made.create("main:1 make:2")
    key, *outer = made.code.stacks[1].frames
    made.code.stack(1, key | FRAME_EXACT, *outer)
    assert made.snapshot().reference_calls == outer


def test_nothing_is_asked_where_nothing_is_left() -> None:
    made = Simulation()
    made.put(made.create("main:1 make:2"), "main:3 drop:4")
    assert made.snapshot().reference_calls == []
    assert snapshot(made.code).reference_calls == []
