"""Places of references: what of a stack is a wrapper."""

from __future__ import annotations

import pytest
from simulated import Simulation

from tracer.analysis.reference_sites import Level, Places
from tracer.analysis.stacks import SymbolizedStacks

MAPS = [f"main:1 {caller} map__put:304" for caller in ("maps__remove:78", "maps__purge:100", "entry__delete:7")]
RINGS = ["main:1 evlist__free:9 ring__put:20", "main:2 evlist__read:5 ring__put:20"]


def places(*together: list[str], stacks: list[str], counting: tuple[str, ...] = ()) -> dict[str, object]:
    """Return the innermost call that tells each stack."""
    made = Simulation()
    numbers = [made.stack(stack) for stack in stacks]
    snapshot = made.snapshot()
    table = SymbolizedStacks(snapshot.stacks, snapshot.binaries, made.code.symbols, counting=counting)
    found = Places(table, numbers, together=[[made.stack(one) for one in some] for some in together])
    return {stack: found.key(number, Level.CALL) for stack, number in zip(stacks, numbers, strict=True)}


def innermost(found: dict[str, object], stack: str) -> str:
    key = found[stack]
    assert isinstance(key, tuple)
    return str(key[0]).partition("@")[0]


def test_what_all_stacks_share_is_a_wrapper() -> None:
    found = places(stacks=MAPS)
    assert [innermost(found, stack) for stack in MAPS] == ["maps__remove", "maps__purge", "entry__delete"]


def test_two_types_of_one_name_have_wrappers_of_their_own() -> None:
    found = places(MAPS, RINGS[:1], RINGS[1:], stacks=[*MAPS, *RINGS])
    assert [innermost(found, stack) for stack in MAPS] == ["maps__remove", "maps__purge", "entry__delete"]
    assert {innermost(found, stack) for stack in RINGS} == {"ring__put"}, "two callers are too few to tell"


@pytest.mark.parametrize("also", [RINGS[0], RINGS[1]])
def test_what_one_object_goes_through_is_of_one_type(also: str) -> None:
    found = places([*MAPS, also], stacks=[*MAPS, *RINGS])
    assert {innermost(found, stack) for stack in MAPS} == {"map__put"}


@pytest.mark.parametrize("counted", ["source_unref_internal", "_source_unref_unlocked"])
def test_another_door_to_a_put_is_no_place_of_its_own(counted: str) -> None:
    doors = ["main:1 add_idle:9 source_unref:5", "main:2 quit:4 source_unref:5"]
    direct = "main:1 add_idle:9 source_destroy:8"
    found = places(stacks=[*doors, direct], counting=(counted,))
    assert [innermost(found, stack) for stack in (*doors, direct)] == ["add_idle", "quit", "source_destroy"]


@pytest.mark.parametrize("caller", ["main:2", "main:1 add_idle:9 source_unref:5"])
def test_what_does_the_work_of_a_put_is_no_door_to_it(caller: str) -> None:
    children = f"{caller} source_unref:7 source_unref_internal:30"
    found = places(stacks=[children, "main:1 quit:4"], counting=("source_unref",))
    assert innermost(found, children) == "source_unref_internal", "it puts the children of what ended"
    found = places(stacks=[children, "main:1 quit:4"], counting=("source_unref_internal",))
    assert innermost(found, children) == "source_unref_internal", "it is the put"


def test_what_makes_objects_itself_wraps_no_put() -> None:
    made = Simulation()
    puts = [made.stack(f"main:1 {caller}:2 add_data:7") for caller in ("fill", "read")]
    births = [made.stack("main:1 fill:2 add_data:5")]
    snapshot = made.snapshot()
    table = SymbolizedStacks(snapshot.stacks, snapshot.binaries, made.code.symbols)
    assert [len(Places(table, puts, births=some).wrappers()) for some in ((), births)] == [1, 0]
