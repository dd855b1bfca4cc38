"""Parts that were taken while another object was made, and are left with it."""

from __future__ import annotations

from hand_made import DSO, MAP
from simulated import Simulation

from tracer.analysis.analysis import analyse


def told(made: Simulation) -> list[tuple[str | None, int, bool]]:
    """Return type, count and whether it is a cause, in order."""
    leaks = analyse(made.snapshot(), made.code.symbols).leaks
    return [(leak.type, leak.count, leak.cause is not None) for leak in leaks]


def make(made: Simulation, *, map_ends: bool = False, dso_ends: bool = False, thread: int = 812) -> None:
    """Make a dso in the constructor of a map, whose creation is seen when it returns."""
    dso = made.create("main:5 map_new:7", type_=DSO)
    map_ = made.create("main:5", type_=MAP, tid=thread)
    if map_ends:
        made.put(map_, "main:9")
    if dso_ends:
        made.put(dso, "main:9 map_free:3")


def lend(made: Simulation, calls: str) -> None:
    """Make a dso of which a reference is got in some calls, and which its creator puts."""
    dso = made.create("main:3", type_=DSO)
    made.get(dso, calls)
    made.put(dso, "main:6")


def test_a_part_is_kept_by_what_was_made() -> None:
    made = Simulation()
    for _ in range(3):
        make(made)
    assert told(made) == [("map", 3, True), ("dso", 3, False)]


def test_a_part_whose_object_has_ended_is_kept_by_none() -> None:
    made = Simulation()
    for _ in range(3):
        make(made, map_ends=True)
    make(made, dso_ends=True)
    assert told(made) == [("dso", 3, True), ("map", 1, True)]


def test_what_another_thread_makes_has_no_such_part() -> None:
    made = Simulation()
    make(made, thread=813)
    assert {is_cause for *_, is_cause in told(made)} == {True}


def test_what_is_taken_oftener_than_made_is_no_part() -> None:
    made = Simulation()
    make(made)
    for _ in range(2):
        made.put(made.create("main:5 map_new:7", type_=DSO), "main:6")
    assert {is_cause for *_, is_cause in told(made)} == {True}


def test_a_reference_that_was_got_is_a_part_too() -> None:
    made = Simulation()
    dso = made.create("main:3", type_=DSO)
    made.get(dso, "main:5 map_new:7")
    made.create("main:5", type_=MAP)
    made.put(dso, "main:6")
    assert told(made) == [("map", 1, True), ("dso", 1, False)]


def test_a_creation_that_the_constructor_shows_itself() -> None:
    """Where it is handed up, as is learnt of those that ended."""
    made = Simulation()
    for number in range(7):
        dso = made.create("main:5 map__new:7", type_=DSO)
        map_ = made.create("main:5 map__new:8", type_=MAP)
        if number < 6:
            made.put(map_, "main:9")
            made.put(dso, "main:9 drop:3")
    assert told(made) == [("map", 1, True), ("dso", 1, False)]


def test_a_function_named_for_a_type_keeps_for_its_objects() -> None:
    made = Simulation()
    for _ in range(2):
        made.create("main:4", type_=MAP)
        lend(made, "main:5 map__insert:7")
    assert told(made) == [("map", 2, True), ("dso", 2, False)]


def test_a_type_of_which_most_ended_keeps_few() -> None:
    made = Simulation()
    for number in range(5):
        map_ = made.create("main:4", type_=MAP)
        if number:
            made.put(map_, "main:8")
        lend(made, "main:5 map__insert:7")
    assert told(made) == [("dso", 5, True), ("map", 1, True)]
