"""Slots that gets fill and puts empty tell which reference was never put, where numbers and order do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated import Simulation

from tracer.analysis.analysis import analyse
from tracer.analysis.slots import Kept, Slots
from tracer.analysis.stacks import SymbolizedStacks
from tracer.model.holders import HOLDER_RECORD, HolderKind
from tracer.model.passed import Passed
from tracer.model.reachability import KIND_REFERENCE
from tracer.model.snapshot import Snapshot

FIRST, SECOND = "main:1 fill:11", "main:1 fill:12"
DROP = "main:9 drop:21"
STUB = Passed(("p0+8", "?", "?"), ((), (), (), ()))


def passes(first: str, *kept: str) -> str:
    """Return what a call passes that gives `first`, and what becomes of what it returns."""
    return Passed((first, "?", "?"), ((), (), (), kept)).text()


def kept_as(first: str, *kept: str) -> str:
    """The same, of what it is given."""
    return Passed((first, "?", "?"), (kept, (), (), ())).text()


def tell(made: Simulation, calls: Mapping[str, str]) -> None:
    """Say of calls, FUNCTION:LINE, what they pass."""
    for key, frames in made.code.symbols.items():
        said = calls.get(f"{frames[-1].function}:{frames[-1].line}")
        if said is not None:
            made.code.symbols[key] = (*frames[:-1], replace(frames[-1], passes=said))


def accused(snapshot: Snapshot, made: Simulation) -> tuple[str | None, int | None]:
    (leak,) = analyse(snapshot, made.code.symbols).leaks
    return leak.unpaired[0].stack[0].function, leak.unpaired[0].stack[0].line


def filled_twice(objects: int = 3) -> Simulation:
    """Objects that two members hold, of which one put is there, and is always the last that happens."""
    made = Simulation()
    for _ in range(objects):
        thing = made.create("main:5 make:7")
        made.get(thing, FIRST)
        made.get(thing, SECOND)
        made.put(thing, "main:6")
        made.put(thing, DROP)
    return made


@pytest.mark.parametrize(("emptied", "line"), [("p0@8", 12), ("p0@16", 11)])
def test_the_member_that_no_put_empties(emptied: str, line: int) -> None:
    made = filled_twice()
    tell(made, {"fill:11": passes("p1", "p0@8"), "fill:12": passes("p1", "p0@16"), "drop:21": passes(emptied)})
    assert accused(made.snapshot(), made) == ("fill", line)
    (leak,) = analyse(made.snapshot(), made.code.symbols).leaks
    member = 24 - int(emptied[-2:].strip("@"))
    assert f"it is stored {member:#x} bytes inside a struct" in leak.unpaired[0].reason


@pytest.mark.parametrize(("offset", "line"), [(8, 11), (16, 12)])
def test_the_member_that_still_holds_it(offset: int, line: int) -> None:
    made = filled_twice()
    tell(made, {"fill:11": passes("p1", "p0@8"), "fill:12": passes("p1", "p0@16")})
    snapshot = made.snapshot()
    holders = np.zeros(len(snapshot.objects), HOLDER_RECORD)
    holders["target"], holders["pid"], holders["generation"] = snapshot.objects["address"], 812, 1
    holders["target_kind"], holders["kind"] = KIND_REFERENCE, HolderKind.BLOCK
    holders["offset"], holders["count"] = offset, 1
    assert accused(replace(snapshot, holders=holders), made) == ("fill", line)


@pytest.mark.parametrize(("offset", "line"), [(8, 11), (16, 12)])
def test_the_member_of_a_block_that_was_freed_without_a_put(offset: int, line: int) -> None:
    made = Simulation()
    for _ in range(3):
        thing = made.create("main:5 make:7")
        made.get(thing, FIRST)
        made.get(thing, SECOND)
        made.put(thing, "main:6")
        made.put(thing, DROP)
        made.free_holder(thing, "main:9 finish:30 other:31 delete:32 free:33", "main:1 new:2", offset)
    tell(made, {"fill:11": passes("p1", "p0@8"), "fill:12": passes("p1", "p0@16"), "drop:21": passes("?")})
    assert accused(made.snapshot(), made) == ("fill", line)
    (leak,) = analyse(made.snapshot(), made.code.symbols).leaks
    assert leak.unpaired[0].kept_at == offset
    assert f"it is stored {offset:#x} bytes inside a struct, and such a block was freed" in leak.unpaired[0].reason


def slots_of(made: Simulation, wrappers: int = 0) -> Slots:
    """`wrappers`: so many calls at the leaf of each stack."""
    snapshot = made.snapshot()
    table = SymbolizedStacks(snapshot.stacks, snapshot.binaries, made.code.symbols)
    return Slots(table, lambda stack: table.get(stack).frames[wrappers])


def test_a_reference_is_followed_to_who_keeps_it() -> None:
    made = Simulation()
    stack = made.stack("main:1 keep:2 find:3 thing_get:4")
    tell(made, {"thing_get:4": kept_as("p0+8", "^"), "find:3": passes("?", "^"), "keep:2": passes("p1", "p0@24")})
    kept = slots_of(made, 1).of_get(stack).known
    assert "@24" in kept and {key[0] for key in kept} == {"@", "r"}  # in a variable as well, until it is stored


@pytest.mark.parametrize("taken", ["p0@56*", "p0@56@0*", "p2+56*", "r99@8@56*", "?@56*"])
def test_a_container_that_a_reference_is_put_into_and_taken_from(taken: str) -> None:
    """By functions of its own, or word by word; which element it is nobody tells, nor what else is at 56 bytes."""
    made = Simulation()
    get, other = made.stack("main:1 add:2"), made.stack("main:1 add:3")
    put, elsewhere, member = (made.stack(f"main:5 drop:{line}") for line in (6, 7, 8))
    linked = made.stack("main:5 drop:9")
    told = {"add:2": kept_as("p1", "p0@56*"), "add:3": kept_as("p1", "p0@56")}
    tell(made, told | {"drop:6": kept_as("?", f"<{taken}"), "drop:7": kept_as("?", "<p0@64*")} | {
        "drop:8": passes("p0@72"), "drop:9": passes("p1@8-16"),
    })  # fmt: skip
    slots = slots_of(made)
    assert slots.of_get(get) == Kept(perhaps=frozenset({"in@56"})) and slots.of_put(put) == {"in@56"}
    assert slots.likelihood(get, put) > 1 > slots.likelihood(get, member)
    assert [slots.likelihood(get, one) for one in (elsewhere, linked)] == [1.0, 1.0]
    assert slots.likelihood(other, put) < 1
    assert not slots.tells(get) and slots.holding(get, frozenset({"@56"})) == 1.0


def test_a_container_beside_the_code_and_by_a_wrapper() -> None:
    made = Simulation()
    get, put = made.stack("main:1 push:2 thing_get:4"), made.stack("main:1 pop:2 thing_put:4")
    stub, wrapper = kept_as("p0+8"), kept_as("p1", "g7f00@0*")
    tell(made, {"thing_get:4": stub, "push:2": wrapper, "thing_put:4": stub, "pop:2": kept_as("r10", "<g7f00@0@0*")})
    slots = slots_of(made, 1)
    assert [key for key in slots.of_get(get).perhaps if key.startswith("in")] == [
        key for key in slots.of_put(put) if key.startswith("in")
    ] != []  # fmt: skip


def test_a_reference_that_is_handed_up_to_a_variable() -> None:
    made = Simulation()
    stack = made.stack("main:1 use:2 find:3")
    tell(made, {"find:3": passes("?", "^"), "use:2": passes("p1")})
    (key,) = slots_of(made).of_get(stack).known
    assert key.startswith("r")
    put = made.stack("main:1 use:5")
    tell(made, {"use:5": passes(f"r{made.code.symbols[made._frames['use:2']][0].address:x}")})
    assert slots_of(made).of_put(put) == {key}


def test_a_parameter_is_asked_of_who_calls_a_wrapper_alone() -> None:
    made = Simulation()
    put = made.stack("main:1 drop:2 thing_put:4")
    tell(made, {"thing_put:4": kept_as("p0+8"), "drop:2": passes("p0@40")})
    assert slots_of(made, 1).of_put(put) == {"@40"}
    assert slots_of(made, 0).of_put(put) == frozenset()


def test_equal_addresses_of_two_binaries_are_two() -> None:
    made = Simulation()
    key = made.code.frame("elsewhere", "elsewhere.c:1", binary=2, passes=passes("g10@0"))
    other = made.code.frame("here", "here.c:1", passes=passes("g10@0"))
    stacks = [made.code.stack(77, key), made.code.stack(78, other)]
    slots = slots_of(made)
    found = [slots.of_put(stack) for stack in stacks]
    assert all(found)
    assert found[0].isdisjoint(found[1])


@pytest.mark.parametrize("right", [21, 22, 23])
def test_a_slot_that_is_emptied_oftener_than_it_is_filled(right: int) -> None:
    made = Simulation()
    for _ in range(3):
        thing = made.create("main:5 make:7")
        made.get(thing, FIRST)
        made.get(thing, SECOND)
        for put in ("main:9 drop:21", "main:9 drop:22", "main:9 drop:23", "main:6"):
            made.put(thing, put)
    emptied = {f"drop:{line}": passes("p0@8" if line == right else "p0@16") for line in (21, 22, 23)}
    variable = f"r{made.code.symbols[made._frames['main:5']][0].address:x}"
    own = {"make:7": passes("?", "^"), "main:5": passes("p1"), "main:6": passes(variable)}
    tell(made, {"fill:11": passes("p1", "p0@8"), "fill:12": passes("p1", "p0@16"), **emptied, **own})
    (error,) = analyse(made.snapshot(), made.code.symbols).errors
    assert error.probably is not None
    assert error.probably[0].line in {21, 22, 23} - {right}


_WORDS = st.text("p0r1gs@+-?/>~^ 9", max_size=12)
_SAID = st.lists(_WORDS, min_size=3, max_size=4).map(" ".join) | st.text(max_size=40)


@given(said=st.lists(_SAID, min_size=4, max_size=4))
def test_whatever_a_recording_says_is_taken(said: list[str]) -> None:
    made = filled_twice(1)
    tell(made, dict(zip(("main:1", "fill:11", "fill:12", "drop:21"), said, strict=True)))
    assert analyse(made.snapshot(), made.code.symbols).leaks


def test_a_variable_has_what_was_handed_up_to_it() -> None:
    """By lines both the creation and the get may be handed up to one function; the code tells which it puts."""
    made = Simulation()
    for _ in range(5):
        thing = made.create("main:5 load:3 find:11 make:7")
        made.get(thing, "main:5 load:3 find:12")
        made.put(thing, "main:5 load:9")
    returned = made.code.symbols[made._frames["load:3"]][0].address
    tell(made, {
        "make:7": passes("?", "^"), "find:11": passes("?", "~"), "find:12": passes("?", "^"), "load:3": passes("p0"),
        "load:9": passes(f"r{returned:x}"),
    })  # fmt: skip
    assert accused(made.snapshot(), made) == ("make", 7)


@pytest.mark.parametrize(
    ("use", "keeper"),
    [
        (passes("p1"), 1),
        (passes("p1", "^"), None),  # it returns what it was handed up
        (passes("p1", "p2@0"), None),  # or stores it where its caller said
        (passes("p1", "?"), None),  # or nobody knows where
    ],
)
def test_what_the_code_does_not_return_is_not_handed_up(use: str, keeper: int | None) -> None:
    made = Simulation()
    stack = made.stack("main:1 use:2 find:3")
    tell(made, {"find:3": passes("?", "^"), "use:2": use})
    assert slots_of(made).keeper(stack) == keeper


def test_what_a_caller_gave_itself_may_be_its_own() -> None:
    made = Simulation()
    stack = made.stack("main:1 use:2 thing_get:3")
    tell(made, {"thing_get:3": kept_as("p0"), "use:2": kept_as("p1")})
    assert slots_of(made).keeper(stack) is None


def test_another_call_of_the_function_that_puts_is_not_the_one_that_took() -> None:
    """A callback makes the next object, and the same function puts that when its own callback has run."""
    made = Simulation()
    for _ in range(6):
        thing = made.create("main:1 run:9 done:3 start:5 make:7")
        made.get(thing, "main:1 run:9 done:3 start:5 begin:6")
        made.put(thing, "main:1 run:9 done:4")
    tell(made, {"make:7": passes("?", "^"), "start:5": passes("?"), "begin:6": kept_as("p0")})
    assert accused(made.snapshot(), made) == ("make", 7)


def test_a_call_that_ends_by_a_jump_to_the_put_gives_back_what_it_took() -> None:
    """Its own frame is not among those of the put."""
    made = Simulation()
    for _ in range(6):
        thing = made.create("main:1 make:7")
        made.get(thing, "main:1 run:9 check:3 thing_get:4")
        made.put(thing, "main:1 run:9")
    tell(made, {"thing_get:4": kept_as("p0"), "check:3": kept_as("p1@8")})
    assert accused(made.snapshot(), made) == ("make", 7)


def test_a_put_of_a_variable_is_known_of_a_single_object() -> None:
    made = Simulation()
    thing = made.create("main:1 fill:2")
    made.get(thing, "main:1 fill:3 add:9")
    made.put(thing, "main:1 fill:4")
    tell(made, {"fill:2": passes("p1"), "add:9": kept_as("p1", "p0@32@0*")})
    own = f"r{made.code.symbols[made._frames['fill:2']][0].address:x}"
    tell(made, {"fill:3": kept_as(own), "fill:4": passes(own)})
    assert accused(made.snapshot(), made) == ("add", 9)


def test_puts_of_one_line_are_one_place_where_the_numbers_come_out_so() -> None:
    """What one stack took is given back by two ways to one line."""
    made = Simulation()
    thing = made.create("main:1 make:2")
    made.get(thing, "main:1 keep:3")
    for turn in range(12):
        made.get(thing, "main:4 begin:5")
        made.put(thing, f"main:{6 + turn % 2} end:8")
    made.put(thing, "main:1 make:9")
    tell(made, {"begin:5": passes("p1", "p0@24"), "keep:3": passes("p1", "p0@32"), "end:8": passes("p0@24")})
    assert accused(made.snapshot(), made) == ("keep", 3)
