"""Puts that were made within a put of another type."""

from __future__ import annotations

from collections.abc import Mapping

from hand_made import Code, snapshot

from tracer.analysis.evidence import Evidence
from tracer.analysis.putters import Putters

STACKS = {
    1: ("map__put:9", "purge:4", "main:1"),
    2: ("map__put:9", "remove:7", "main:2"),
    3: ("dso__put:5", "map__exit:3", "map__put:8", "purge:4", "main:1"),
    4: ("dso__put:5", "map__exit:3", "remove:7", "main:2"),
    5: ("dso__put:5", "map__exit:3", "remove:6", "main:2"),
    6: ("dso__put:5", "purge:4", "main:1"),
}


def putters(stacks: Mapping[int, tuple[str, ...]] = STACKS) -> Putters:
    """Return what is learnt of stacks, of which the first two are the maps' puts."""
    code = Code()
    for id_, frames in stacks.items():
        named = (frame.split(":") for frame in frames)
        code.stack(id_, *(code.frame(function, f"{function}.c:{line}") for function, line in named))
    book = Evidence(snapshot(code), code.symbols, 1).stacks
    return Putters(book, {"map": (1, 2), "dso": tuple(stacks)[2:]})


def test_the_put_that_stands_on_the_stack() -> None:
    assert putters().around(3, "dso") == ("map",)


def test_a_put_that_ended_in_a_jump_is_known_by_its_call() -> None:
    assert putters().around(4, "dso") == ("map",)
    assert putters().around(5, "dso") == (), "another line of the same function"


def test_a_put_is_not_around_itself() -> None:
    assert putters().around(1, "map") == ()


def test_what_few_puts_share_is_not_all_the_put() -> None:
    """`main` is around both puts of the map, and is none."""
    stacks = {1: STACKS[1], 2: ("map__put:9", "purge:4", "main:2"), 3: ("dso__put:5", "purge:7", "main:1")}
    assert putters(stacks).around(3, "dso") == ()
