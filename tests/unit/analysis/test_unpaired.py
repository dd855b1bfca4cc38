"""Which reference was never put: small cases by hand, and made-up programs with one put left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hand_made import MAP
from simulated import Order, Simulation, Step, Use, nested, run, shuffled, threaded

from tracer.analysis.analysis import analyse
from tracer.model.findings import Findings, Leak

BIRTH = Use("main:9 entry__new:15", "main:14 shutdown:3 entry__release:17")
USES = (
    Use("main:10 serve:5 cache__find:20", "main:10 serve:9 cache__release:30"),
    Use("main:10 serve:6 index__add:40", "main:12 sweep:3 index__drop:50"),
    Use("main:10 log:7 log__keep:70", "main:10 log:8 log__drop:75"),
    Use("main:11 worker:2 job__take:80", "main:11 worker:4 job__done:90"),
    Use("main:10 serve:7 session__bind:60", "main:13 expire:2 session__unbind:66"),
)
FIND, INDEX, SESSION = USES[0], USES[1], USES[-1]


def found(made: Simulation, **history: int) -> Findings:
    return analyse(made.snapshot(**history), made.code.symbols)


def only_leak(made: Simulation, **history: int) -> Leak:
    (leak,) = found(made, **history).leaks
    return leak


def said(leak: Leak) -> list[tuple[str, int, str, str]]:
    return [
        (f"{get.stack[0].function}:{get.stack[0].line}", get.count, get.confidence, get.reason)
        for get in leak.unpaired
    ]


def live(made: Simulation, *uses: Use, skip: Use | None = None) -> None:
    """Let one object live through `uses`, one after the other; the put of `skip` is left out."""
    thing = made.create(BIRTH.get)
    for use in uses:
        made.get(thing, use.get)
        if use is not skip:
            made.put(thing, use.put)
    if skip is not BIRTH:
        made.put(thing, BIRTH.put)


def test_a_holder_says_exactly() -> None:
    made = Simulation()
    for number in range(3):
        thing = made.create(BIRTH.get)
        for holder in (0x51, 0x52, 0x53):
            made.get(thing, FIND.get, holder=holder + number)
        made.put(thing, FIND.put, holder=0x53 + number)
        made.put(thing, FIND.put, holder=0x51 + number)
        made.put(thing, BIRTH.put)
    assert said(only_leak(made)) == [
        ("cache__find:20", 3, "exact", "taken for holders such as 0x52, which never put them")
    ]


def test_a_put_without_its_holder_withdraws_the_certainty() -> None:
    made = Simulation()
    thing = made.create(BIRTH.get)
    made.get(thing, FIND.get, holder=0x51)
    made.get(thing, FIND.get, holder=0x52)
    made.put(thing, FIND.put)
    made.put(thing, FIND.put)
    assert {get.confidence for get in only_leak(made).unpaired} == {"weak"}


def test_healthy_siblings_tell_which_get() -> None:
    made = Simulation()
    for _ in range(38):
        live(made, FIND)
    live(made)
    live(made, INDEX)
    for _ in range(2):
        live(made, FIND, INDEX, skip=FIND)
    leak = only_leak(made)
    assert said(leak) == [
        (
            "cache__find:20", 2, "strong",
            "38 of 40 such gets were put at cache__release (cache.c:30); these 2 never were",
        )
    ]  # fmt: skip
    assert [(end.stack[0].function, end.count) for end in leak.healthy] == [("entry__release", 40)]


def test_the_reference_of_the_creator_counts() -> None:
    made = Simulation()
    for _ in range(6):
        live(made, FIND, FIND)
    live(made)
    live(made, FIND, skip=BIRTH)
    reason = (
        "of 8 references of objects created here 7 were put at entry__release (entry.c:17); this one never was"
    )
    assert said(only_leak(made)) == [("entry__new:15", 1, "strong", reason)]


def test_what_was_never_put_at_all_needs_no_comparison() -> None:
    made = Simulation()
    thing = made.create(BIRTH.get, count=3)
    made.get(thing, FIND.get)
    assert said(only_leak(made)) == [
        ("entry__new:15", 3, "strong", "no object created here ever ended"),
        ("cache__find:20", 1, "strong",
         "no object that ended took a reference here; the other references were put where healthy objects put theirs"),
    ]  # fmt: skip


def test_a_get_that_no_healthy_object_made() -> None:
    made = Simulation()
    for _ in range(5):
        live(made, FIND, FIND)
        live(made)
    live(made, FIND, INDEX, skip=INDEX)
    assert said(only_leak(made)) == [
        ("index__add:40", 1, "strong",
         "no object that ended took a reference here; the other references were put where healthy objects put theirs")
    ]  # fmt: skip


def test_without_healthy_objects_it_is_a_guess() -> None:
    made = Simulation()
    live(made, FIND, INDEX, skip=INDEX)
    (first, *_) = only_leak(made).unpaired
    # Order gives the last put to the last get; nearness, which is a guess as well, gives it to the creation.
    assert (first.stack[0].function, first.count, first.confidence) == ("index__add", 1, "weak")


def test_lost_events_leave_only_a_guess() -> None:
    made = Simulation()
    for _ in range(9):
        live(made, FIND)
        live(made)
    live(made, FIND, skip=FIND)
    made.things[-1].gets += 1
    (first, *_) = only_leak(made).unpaired
    assert first.confidence == "weak"
    assert first.reason.endswith("but some events of these objects were lost")


def test_the_same_call_from_an_unknown_caller() -> None:
    made = Simulation()
    for number in range(7):
        caller = f"main:{number} "
        live(made, Use(caller + "poll:3 cache__find:20", caller + "poll:9 cache__release:30"))
        live(made, INDEX)
        live(made)
    other = Use("main:99 poll:3 cache__find:20", "main:99 poll:9 cache__release:30")
    live(made, other, INDEX, skip=other)
    assert said(only_leak(made))[0][1:] == (
        1, "strong",
        "7 of 8 gets by these two functions were put at cache__release (cache.c:30); this one never was",
    )  # fmt: skip


def test_busy_objects_are_judged_by_all_they_did() -> None:
    made = Simulation()
    for _ in range(5):
        live(made, FIND)
        live(made, INDEX)
    live(made, *[FIND, INDEX] * 200, FIND, skip=None)
    thing = made.create(BIRTH.get)
    for step in range(900):
        use = USES[step % 2]
        made.get(thing, use.get)
        if step != 700:
            made.put(thing, use.put)
    made.put(thing, BIRTH.put)
    leak = only_leak(made, buffer_events=300, busy_events=50, reorder_ns=0)
    assert [(call.stack[0].function, call.count) for call in leak.gets] == [("cache__find", 450), ("index__add", 450)]
    assert [get[:3] for get in said(leak)] == [("cache__find:20", 1, "strong")]


def outcome(order: Order, objects: int, leaking: int, most: int) -> Counter[tuple[str, bool]]:
    """Leave out a put in 24 programs; return how often the get ranked first was right, by confidence."""
    results: Counter[tuple[str, bool]] = Counter()
    for seed in range(24):
        missing = seed % (len(USES) + 1) - 1
        made = run(USES, BIRTH, order, seed, objects, missing, leaking, most)
        use = BIRTH if missing < 0 else USES[missing]
        for leak in found(made).leaks:
            first = leak.unpaired[0]
            calls = " ".join(f"{frame.function}:{frame.line}" for frame in reversed(first.stack))
            results[first.confidence, calls == use.get] += 1
    return results


@pytest.mark.parametrize("order", [nested, shuffled, threaded])
@pytest.mark.parametrize(("objects", "leaking", "most"), [(60, 2, 6), (200, 5, 3), (100, 3, 15)])
def test_with_enough_healthy_objects_every_verdict_is_right(
    order: Order, objects: int, leaking: int, most: int
) -> None:
    results = outcome(order, objects, leaking, most)
    assert {right for _, right in results} == {True}
    assert results["strong", True] > 40


@pytest.mark.parametrize("order", [nested, shuffled, threaded])
def test_with_few_objects_doubt_is_admitted(order: Order) -> None:
    results = outcome(order, 5, 2, 3)
    assert results["strong", False] == 0
    assert results["weak", True] + results["strong", True] > 4 * results["weak", False]


def test_an_object_that_is_put_by_delete_is_healthy_too() -> None:
    made = Simulation()
    for _ in range(4):
        thing = made.create(BIRTH.get)
        made.get(thing, FIND.get)
        made.put(thing, FIND.put)
        made.delete(thing, "main:20 entry__free:5")
        thing = made.create(BIRTH.get)
        made.delete(thing, "main:20 entry__free:5")
    live(made, FIND, skip=BIRTH)
    reason = "of 9 references of objects created here 8 were put at entry__free (entry.c:5); this one never was"
    assert said(only_leak(made)) == [("entry__new:15", 1, "strong", reason)]


def test_the_put_that_was_one_too_many() -> None:
    made = Simulation()
    for _ in range(7):
        live(made, FIND)
        live(made, INDEX)
        live(made)
    thing = made.create(BIRTH.get)
    for stack in (FIND.put, FIND.put, BIRTH.put):
        if stack == FIND.put and not thing.gets:
            made.get(thing, FIND.get)
        made.put(thing, stack)
    (error,) = found(made).errors
    assert error.probably is not None
    assert [frame.function for frame in error.probably] == ["cache__release", "serve", "main"]
    assert error.reason == "it gives back what is taken at cache__find (cache.c:20): 1 taken here, 2 put"


@pytest.mark.parametrize("order", [nested, shuffled, threaded])
def test_extra_puts_are_found_in_made_up_programs(order: Order) -> None:
    for seed in range(12):
        extra = seed % (len(USES) + 1) - 1
        made = run(USES, BIRTH, order, seed, 60, 0, 0)
        thing = made.create(BIRTH.get)
        steps = [*order(Random(seed), [0, 2, 4]), Step(-1, False)]
        steps.insert(1 + seed % len(steps), Step(extra, False))
        for step in steps:
            use = BIRTH if step.use < 0 else USES[step.use]
            (made.get if step.is_get else made.put)(thing, use.get if step.is_get else use.put, step.tid)
        (error,) = found(made).errors
        assert error.probably is not None
        wanted = (BIRTH if extra < 0 else USES[extra]).put
        assert " ".join(f"{frame.function}:{frame.line}" for frame in reversed(error.probably)) == wanted




def test_a_function_that_takes_one_and_puts_two_is_accused() -> None:
    """It took none of what the other puts give back; those are fewer, but not its own."""
    made = Simulation()
    for _ in range(9):
        live(made, FIND)
        live(made, INDEX)
    thing = made.create(BIRTH.get)
    made.get(thing, INDEX.get)
    made.get(thing, FIND.get)
    for stack in (FIND.put, FIND.put, INDEX.put, BIRTH.put):
        made.put(thing, stack)
    (error,) = found(made).errors
    assert [frame.function for frame in error.probably or ()] == ["cache__release", "serve", "main"]


def test_a_put_whose_get_never_happened_gives_no_count_of_zero() -> None:
    made = Simulation()
    for _ in range(9):
        live(made, FIND)
        live(made)
    thing = made.create(BIRTH.get)
    made.put(thing, BIRTH.put)
    made.put(thing, FIND.put)
    (error,) = found(made).errors
    assert [frame.function for frame in error.probably or ()] == ["cache__release", "serve", "main"]
    assert error.reason == "other objects take at cache__find (cache.c:20) what is put there; this one did not"


OPEN = "main:10 table__open:2 entry__new:15"
KEEP = "main:10 table__open:3 table__add:8"
OWN_PUT, LAST_PUT = "main:10 table__open:5", "main:14 table__purge:4"


def blamed(made: Simulation) -> set[str | None]:
    """Return the functions of the puts that over-puts are put down to."""
    errors = [error for error in found(made).errors if error.kind == "over-put"]
    return {error.probably[0].function if error.probably else None for error in errors}


def test_one_call_that_puts_twice_what_it_took_once_is_accused_where_no_object_is_well() -> None:
    """What it keeps was taken in the same call, and is put by the last put, which is the error."""
    made = Simulation()
    for _ in range(7):
        thing = made.create(OPEN)
        made.get(thing, KEEP)
        for put in (OWN_PUT, OWN_PUT, LAST_PUT):
            made.put(thing, put)
    assert blamed(made) == {"table__open"}


def test_what_is_taken_after_the_end_is_no_reason_to_accuse_its_put() -> None:
    made = Simulation()
    for _ in range(9):
        live(made, FIND)
        live(made, INDEX)
    thing = made.create(BIRTH.get)
    for put in (FIND.put, BIRTH.put):
        made.put(thing, put)
    made.get_after_end(thing, INDEX.get)
    for put in (INDEX.put, BIRTH.put):
        made.put(thing, put)
    assert blamed(made) == {"cache__release"}


def test_numbers_tell_which_put_was_made_twice_where_some_that_ended_too_early_seem_well() -> None:
    """Those were put there often and at the other place hardly ever, which is no habit."""
    made = Simulation()
    for held in (*[2] * 6, *[4] * 2):
        thing = made.create(BIRTH.get)
        for get in (INDEX.get, SESSION.get) * held:
            made.get(thing, get)
        puts = [INDEX.put, INDEX.put, SESSION.put] * held + [BIRTH.put]
        puts.remove(INDEX.put)
        for put in puts if held > 2 else puts[: 1 + 2 * held]:
            made.put(thing, put)
    assert blamed(made) == {"index__drop"}


def test_numbers_of_one_object_alone_do_not_accuse_what_one_call_gave_back_itself() -> None:
    """That its call took it is learnt of no object, so the numbers seem to come out without that put."""
    made = Simulation()
    thing = made.create(BIRTH.get)
    for number in range(7):
        made.get(thing, INDEX.get)
        if number == 2:
            made.put(thing, "main:10 serve:6 index__add:45")
    for put in (BIRTH.put, *[INDEX.put] * 7):
        made.put(thing, put)
    assert blamed(made) == {"index__drop"}


def test_a_put_that_met_another_object_is_not_accused() -> None:
    """The first object ends too early. What has its memory then is put by who held the first one."""
    made = Simulation()
    for _ in range(9):
        live(made, FIND)
        live(made, INDEX)
    first = made.create(BIRTH.get)
    for get in (INDEX.get, FIND.get):
        made.get(first, get)
    for put in (FIND.put, FIND.put, BIRTH.put):
        made.put(first, put)
    second = made.create(BIRTH.get, memory_of=first)
    for put in (INDEX.put, BIRTH.put):
        made.put(second, put)
    assert blamed(made) == {"cache__release"}
    (error,) = found(made).errors
    assert error.reason is not None and "1 taken here, 2 put, with 1 that had this memory before" in error.reason


@pytest.mark.parametrize("reused", [False, True])
def test_the_late_put_of_memory_that_was_used_again_is_not_surely_the_one(reused: bool) -> None:
    """It is mostly of who held the object that was there before, and ended too early."""
    made = Simulation()
    for _ in range(30):
        live(made, FIND)
    first = made.create(BIRTH.get)
    made.get(first, FIND.get)
    for put in (FIND.put, BIRTH.put):
        made.put(first, put)
    second = made.create(BIRTH.get, memory_of=first) if reused else made.create(BIRTH.get)
    for put in (BIRTH.put, BIRTH.put):
        made.put(second, put)
    (error,) = found(made).errors
    assert error.reason is not None
    assert error.reason.endswith("judged by order and nearness alone") is reused


def test_numbers_tell_which_get_was_made_twice() -> None:
    """Else what the cache took would have been given back in two ways. No object is well."""
    made = Simulation()
    for _ in range(7):
        thing = made.create(BIRTH.get)
        for get in (FIND.get, FIND.get, INDEX.get):
            made.get(thing, get)
        for put in (FIND.put, INDEX.put, BIRTH.put):
            made.put(thing, put)
    assert said(only_leak(made))[0][:2] == ("cache__find:20", 7)


def test_an_error_without_history_accuses_no_put() -> None:
    made = Simulation()
    live(made, FIND)
    thing = made.create(BIRTH.get)
    made.put(thing, BIRTH.put)
    made.put(thing, FIND.put)
    snap = made.snapshot()
    (error,) = analyse(replace(snap, error_history=snap.error_history[:0]), made.code.symbols).errors
    assert (error.probably, error.reason) == (None, None)


@pytest.mark.parametrize("finds", [1, 2, 5])
def test_what_others_never_put_is_accused_where_no_healthy_object_took_it(finds: int) -> None:
    made = Simulation()
    for _ in range(10):
        live(made)
    for _ in range(30):
        live(made, INDEX, INDEX, INDEX, skip=INDEX)
    live(made, *[INDEX] * 3, *[FIND] * finds, skip=INDEX)
    accused = Counter[str]()
    for leak in found(made).leaks:
        for get in leak.unpaired:
            accused[get.stack[0].function or ""] += get.count
    assert accused == {"index__add": 93}


def test_a_put_of_what_others_took_is_not_of_its_own_call() -> None:
    """One function splits what it is given: puts that, and enters a new one into the table, whose own reference it
    forgets. The new ones end as the old ones do, in that function too: not of the reference that it made."""
    made = Simulation()
    old = Use("main:10 load:3 table__insert:20", "main:12 split:18")
    new = Use("main:12 split:9 table__insert:20", "main:12 split:18")
    split = Use("main:12 split:5 part__clone:40", "main:12 split:11")
    for use, birth, skip in (*[(old, BIRTH, False)] * 20, *[(new, split, True)] * 6):
        thing = made.create(birth.get)
        made.get(thing, use.get)
        if not skip:
            made.put(thing, birth.put)
        made.put(thing, use.put)
    (leak,) = found(made).leaks
    assert said(leak)[0][:2] == ("part__clone:40", 6)


def test_what_an_ended_object_shows_counts_more_than_what_seems_so_in_those_that_are_left() -> None:
    """Each source is attached, taken for a turn of the loop, and taken off in that turn: order pairs the last two. One
    that never had a turn ended, and shows which reference is given back when it is taken off."""
    attach, turn = "main:10 add:3 attach:20", "main:11 loop:5 check:40"
    made = Simulation()
    ended = made.create(BIRTH.get)
    made.get(ended, attach)
    for put in ("main:12 quit:4 take_off:30", BIRTH.put):
        made.put(ended, put)
    for _ in range(8):
        source = made.create(BIRTH.get)
        for get in (attach, turn):
            made.get(source, get)
        for put in ("main:11 loop:7 dispatch:60 take_off:30", BIRTH.put):
            made.put(source, put)
    assert said(only_leak(made))[0][:2] == ("check:40", 8)


def test_what_objects_without_a_choice_never_put_is_accused_in_those_that_have_one() -> None:
    """Of half of them the tree's reference is all that is left. In the others the put stands nearer to that one."""
    tree, last = "main:10 serve:5 tree__add:20", "main:11 last:7 last__find:30"
    made = Simulation()
    for has_choice in (False, True) * 6:
        thing = made.create(BIRTH.get)
        made.get(thing, tree)
        if has_choice:
            made.get(thing, last)
            made.put(thing, "main:10 serve:9 done:40")
        made.put(thing, BIRTH.put)
    accused = Counter[str]()
    for leak in found(made).leaks:
        accused[leak.unpaired[0].stack[0].function or ""] += leak.count
    assert accused == {"tree__add": 12}


def test_what_other_types_do_at_a_line_tells_what_one_object_lacks() -> None:
    made = Simulation()
    for _ in range(8):
        for get, put in (("main:3 collect:4", "main:3 release:6"), ("main:3 store:5", "main:8 destroy:9")):
            other = made.create("main:1 other:2", type_=MAP)
            made.get(other, get)
            made.put(other, put)
            made.put(other, "main:1 other:7")
    thing = made.create("main:1 make:2")
    made.get(thing, "main:3 collect:4")
    made.get(thing, "main:3 store:5")
    made.put(thing, "main:3 release:6")
    made.put(thing, "main:1 make:7")
    assert said(only_leak(made))[0][0] == "store:5"
