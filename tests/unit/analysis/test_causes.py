"""Which entries share a cause, which are only kept alive, and that causes come first."""

from __future__ import annotations

from dataclasses import replace

from tracer.analysis.causes import with_causes
from tracer.analysis.own_frame import call_into_library
from tracer.analysis.reached import suppressed_with_owners
from tracer.model.findings import Leak, UnpairedGet
from tracer.model.frames import Frame


def frame(function: str, line: int) -> Frame:
    return Frame(function, "perf", file=f"{function}.c", line=line)


def entry(type_: str, count: int, taker: Frame, *held_in: str, put: Frame | None = None, word: str = "strong") -> Leak:
    get = UnpairedGet((taker,), count, word, "because", 0.9, taker, put)
    birth = (frame(f"{type_}_new", count),)
    return Leak(
        f"{count:012x}", "reference", type_, 7, "leaked", count, None, birth, True, "complete",
        unpaired=(get,), held_in=held_in,
    )  # fmt: skip


def block(size: int) -> Leak:
    return Leak("b" * 12, "allocation", "malloc", 7, "leaked", 1, size, (), True, "complete")


FIND, INSERT, INIT = frame("find", 10), frame("insert", 20), frame("init", 30)


def told(leaks: list[Leak]) -> list[tuple[str | None, int, bool]]:
    """Return type, count and whether it is a cause, in order."""
    return [(leak.type, leak.count, leak.cause is not None) for leak in with_causes(leaks)]


def test_what_others_keep_alive_stands_below_the_cause() -> None:
    leaks = [
        entry("map", 500, INSERT, "map", "maps"), entry("maps", 50, INIT, "thread"), entry("thread", 5, FIND), block(9),
    ]  # fmt: skip
    assert told(leaks) == [("thread", 5, True), ("map", 500, False), ("maps", 50, False), ("malloc", 1, False)]
    cause, *kept, memory = with_causes(leaks)
    assert [leak.kept_alive_by for leak in kept] == [cause.cause, cause.cause]
    assert (cause.kept_alive_by, memory.kept_alive_by, memory.cause) == (None, None, None)


def test_what_holds_it_has_ended_well() -> None:
    assert told([entry("map", 3, INSERT, "maps")]) == [("map", 3, True)]


def test_a_list_of_its_own_type_is_kept_by_what_keeps_most_of_them() -> None:
    leaks = [entry("map", 9, INSERT, "maps"), entry("map", 4, INIT, "map"), entry("maps", 2, FIND)]
    assert told(leaks) == [("maps", 2, True), ("map", 9, False), ("map", 4, False)]


def test_a_ring_keeps_nobody_alive() -> None:
    leaks = [entry("dso", 4, FIND, "map"), entry("map", 3, INSERT, "dso")]
    assert told(leaks) == [("dso", 4, True), ("map", 3, True)]


def test_other_processes_hold_nothing() -> None:
    leaks = [entry("map", 4, FIND, "maps"), replace(entry("maps", 3, INSERT), pid=8)]
    assert told(leaks) == [("map", 4, True), ("maps", 3, True)]


def test_one_accused_get_is_one_cause() -> None:
    first, second, third = with_causes([entry("map", 4, FIND), entry("map", 3, FIND), entry("map", 2, INSERT)])
    assert first.cause == second.cause != third.cause


def test_what_a_library_takes_for_two_callers_is_two_causes() -> None:
    parse = Frame("parse", "libjson.so.5", path="/usr/lib/x86_64-linux-gnu/libjson.so.5")

    def document(caller: Frame) -> Leak:
        leak = entry("json", 1, parse)
        return replace(leak, unpaired=(replace(leak.unpaired[0], stack=(parse, caller, INIT), taken_for=caller),))

    first, again, other = with_causes([document(FIND), document(FIND), document(INSERT)])
    assert first.cause == again.cause != other.cause


def test_the_call_into_a_library() -> None:
    parse = Frame("parse", "libjson.so.5", path="/usr/lib/x86_64-linux-gnu/libjson.so.5")
    assert call_into_library((parse, parse, FIND, INIT), parse) == FIND
    assert call_into_library((FIND, INIT), FIND) is None
    assert call_into_library((parse, parse), parse) is None
    assert call_into_library((parse, FIND), None) is None


def test_one_missing_put_is_one_cause_unless_it_is_a_guess() -> None:
    put = frame("delete", 40)
    first, second, third = with_causes([
        entry("map", 4, FIND, put=put), entry("map", 3, INSERT, put=put), entry("map", 2, INIT, put=put, word="weak"),
    ])  # fmt: skip
    assert first.cause == second.cause != third.cause


def test_the_cause_by_which_most_is_left_comes_first() -> None:
    leaks = [entry("dso", 6, FIND), entry("map", 5, INSERT, "maps"), entry("maps", 2, INIT)]
    assert told(leaks) == [("maps", 2, True), ("dso", 6, True), ("map", 5, False)]


def test_what_is_suppressed_is_no_cause() -> None:
    leaks = [entry("map", 9, INSERT, "maps"), replace(entry("maps", 2, FIND), suppressed_by="rule")]
    assert told(leaks) == [("map", 9, True), ("maps", 2, False)]


def test_what_lost_something_comes_before_what_something_lost_points_at() -> None:
    """Objects in a ring with a list of others: memory tells that nobody points at them from outside."""
    maps = [replace(entry("map", 81, INSERT, "map"), reachability="indirect"), entry("map", 12, INSERT)]
    maps[1] = replace(maps[1], reachability="reachable")
    threads = replace(entry("thread", 9, FIND), reachability="lost")
    assert told([*maps, threads]) == [("thread", 9, True), ("map", 81, True), ("map", 12, True)]


def numbered(leak: Leak, number: int = 0, keeper: int = 0) -> Leak:
    return replace(leak, number=number, keeper=keeper)


def test_what_lives_by_objects_of_its_own_type_stands_below_their_entry() -> None:
    """Two trees: types alone would make one cause of all."""
    leaks = [
        numbered(entry("node", 9, INIT), keeper=1), numbered(entry("node", 4, INIT), keeper=2),
        numbered(entry("node", 2, FIND), 1), numbered(entry("node", 1, INSERT), 2),
    ]  # fmt: skip
    first, second, *kept = with_causes(leaks)
    assert (first.count, second.count) == (2, 1)
    assert first.cause != second.cause
    assert [(leak.count, leak.cause, leak.kept_alive_by) for leak in kept] == [
        (9, None, first.cause), (4, None, second.cause),
    ]  # fmt: skip


def test_what_lives_by_something_without_a_missing_put_has_a_cause_all_the_same() -> None:
    owner = numbered(replace(entry("tree", 1, FIND), unpaired=()), 1)
    other = replace(entry("tree", 2, FIND), unpaired=())
    first, *rest = with_causes([numbered(entry("node", 9, INIT), keeper=1), owner, other])
    assert (first.type, first.cause is not None) == ("tree", True)
    assert {(leak.type, leak.cause, leak.kept_alive_by) for leak in rest} == {
        ("node", None, first.cause), ("tree", None, None),
    }  # fmt: skip


def test_what_keeps_the_keeper_alive_keeps_all() -> None:
    """Here by type: that of the thread is known to hold maps."""
    leaks = [
        numbered(entry("map", 9, INIT), keeper=1), numbered(entry("map", 3, INSERT, "thread"), 1),
        entry("thread", 2, FIND),
    ]  # fmt: skip
    first, *kept = with_causes(leaks)
    assert first.type == "thread"
    assert {leak.kept_alive_by for leak in kept} == {first.cause}


def test_a_type_that_only_lives_by_others_has_their_cause() -> None:
    leaks = [
        numbered(entry("map", 9, INIT), keeper=1), numbered(entry("maps", 3, FIND), 1),
        entry("symbol", 2, INSERT, "map"),
    ]  # fmt: skip
    first, *kept = with_causes(leaks)
    assert first.type == "maps"
    assert {leak.kept_alive_by for leak in kept} == {first.cause}


def test_a_keeper_that_was_filtered_out_keeps_nobody() -> None:
    assert told([numbered(entry("map", 9, INIT), keeper=1), block(7)]) == [("map", 9, True), ("malloc", 1, False)]


def test_what_lives_by_something_suppressed_is_suppressed() -> None:
    owner = replace(numbered(entry("node", 2, FIND), 1), suppressed_by="rule")
    kept = numbered(entry("node", 9, INIT), keeper=1)
    other = numbered(entry("node", 1, INSERT), 2)
    found = suppressed_with_owners([kept, owner, other])
    assert [leak.suppressed_by for leak in found] == ["rule", "rule", None]
    assert told(found)[0] == ("node", 1, True)
