"""Merging of counted objects: signatures, gets and puts by stack, drift."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hand_made import DSO, MAP, SECOND, Code, blocks, events, objects, process, snapshot
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.analysis import analyse, has_findings
from tracer.analysis.groups import group_rows, oldest
from tracer.model.findings import Leak, TypeRow
from tracer.model.operations import Operation
from tracer.model.records import ObjectFlag
from tracer.model.snapshot import Coverage, SiteInfo, TypeTotals, UncoveredInstances, Unresolved

GET, PUT = Operation.GET, Operation.PUT


class Kit:
    """Code of a program with objects: new() is called by main, work() gets and puts, a() gets, b() puts."""

    def __init__(self) -> None:
        self.code = Code()
        main = self.code.frame("main", "m.c:1")
        self.born = self.code.stack(1, self.code.frame("new", "o.c:1"), main)
        work = self.code.frame("work", "w.c:1")
        self.work_get = self.code.stack(2, self.code.frame("get", "o.c:2"), work, main)
        self.work_put = self.code.stack(3, self.code.frame("put", "o.c:3"), work, main)
        self.a_get = self.code.stack(4, self.code.frame("get", "o.c:2"), self.code.frame("a", "a.c:1"), main)
        self.b_put = self.code.stack(5, self.code.frame("put", "o.c:3"), self.code.frame("b", "b.c:1"), main)

    def leaks(self, *histories: list[tuple[int, int]], **changes: int) -> tuple[Leak, ...]:
        """Judge one object per history of (operation, stack)."""
        live: list[Mapping[str, int]] = []
        happened: list[Mapping[str, int]] = []
        for serial, history in enumerate(histories):
            address = 0x1000 + 64 * serial
            gets, puts = (sum(operation == o for operation, _ in history) for o in (GET, PUT))
            live.append({"address": address, "serial": serial, "count": 1 + gets - puts, "gets": gets, "puts": puts})
            happened += [{"address": address, "serial": serial, "operation": o, "stack": s} for o, s in history]
        snap = snapshot(self.code, objects=objects(*live, **{"stack": self.born} | changes), history=events(*happened))
        return analyse(snap, self.code.symbols).leaks


def test_an_object_never_put_is_one_leak() -> None:
    (leak,) = Kit().leaks([])
    assert (leak.kind, leak.type, leak.state, leak.count, leak.bytes) == ("reference", "dso", "leaked", 1, None)
    assert [(i.address, i.references, i.size, i.age_ns) for i in leak.instances] == [(0x1000, 1, None, 61 * SECOND)]
    assert (leak.gets, leak.puts, leak.notes, leak.own_frame) == ((), (), (), 1)
    assert (leak.maker, leak.stack[0].function) == ("__refcnt__init", "__refcnt__init")


def test_gets_and_puts_are_summed_by_stack() -> None:
    kit = Kit()
    (leak,) = kit.leaks(*[[(GET, kit.a_get), (GET, kit.a_get), (GET, kit.work_get), (PUT, kit.b_put)]] * 3)
    assert leak.count == 3
    assert [(g.stack[1].function, g.count) for g in leak.gets] == [("a", 6), ("work", 3)]
    assert [(p.stack[1].function, p.count) for p in leak.puts] == [("b", 3)]
    assert {i.references for i in leak.instances} == {3}


def test_how_often_a_balanced_piece_of_code_ran_does_not_matter() -> None:
    kit = Kit()
    balanced = [(GET, kit.work_get), (PUT, kit.work_put)]
    (leak,) = kit.leaks([(GET, kit.a_get)], [*balanced, (GET, kit.a_get)], [*balanced * 5, (GET, kit.a_get)])
    assert leak.count == 3
    assert [(g.stack[1].function, g.count) for g in leak.gets] == [("work", 6), ("a", 3)]


def test_other_imbalances_are_other_entries_with_the_same_id() -> None:
    kit = Kit()
    leaks = kit.leaks([], [(GET, kit.a_get), (PUT, kit.b_put)], [(GET, kit.a_get)], [(GET, kit.work_get)], [])
    assert sorted(leak.count for leak in leaks) == [1, 1, 1, 2]
    assert len({leak.id for leak in leaks}) == 1


def test_a_reused_address_does_not_take_over_the_history() -> None:
    kit = Kit()
    live = objects({"address": 0x1000, "serial": 2, "stack": kit.born})
    before = events({"address": 0x1000, "serial": 1, "operation": GET, "stack": kit.a_get})
    (leak,) = analyse(snapshot(kit.code, objects=live, history=before), kit.code.symbols).leaks
    assert leak.gets == ()


def test_types_and_counts_are_kept_apart_and_sorted_by_count() -> None:
    code = Code()
    stack = code.stack(1, code.frame("new", "o.c:1"))
    live = objects(
        {"address": 1}, {"address": 2, "type": MAP}, {"address": 3, "type": MAP},
        {"address": 4, "count": 2}, {"address": 5, "type": 7}, stack=stack,
    )  # fmt: skip
    snap = snapshot(code, objects=live, allocations=blocks({"address": 9, "size": 999, "stack": stack}))
    leaks = analyse(snap, code.symbols).leaks
    assert (leaks[0].type, leaks[0].count) == ("map", 2)
    assert sorted((leak.type or "", leak.count) for leak in leaks) == [
        ("dso", 1), ("dso", 1), ("malloc", 1), ("map", 2), ("type 0x7", 1),
    ]  # fmt: skip
    assert leaks[-1].kind == "allocation", "references come first, whatever their size"


@pytest.mark.parametrize(
    ("flags", "reads", "noted"),
    [
        (0, [], True),
        (ObjectFlag.THREADS, [(GET, 1, 2), (GET, 3, 3)], False),
        (ObjectFlag.THREADS, [(GET, 2, 2), (GET, 3, 3)], True),
        (ObjectFlag.THREADS, [(PUT, 4, 2), (GET, 3, 3)], True),
        (ObjectFlag.THREADS, [(GET, 3, 3)], False),
        (ObjectFlag.COUNT_UNREAD, [], False),
    ],
)
def test_a_counter_that_changed_without_a_stub_is_noted(
    flags: int, reads: list[tuple[int, int, int]], noted: bool
) -> None:
    code = Code()
    stack = code.stack(1, code.frame("new"))
    live = objects({"address": 1, "drift": 1, "count": 3, "flags": flags, "stack": stack})
    # read: the counter before the operation; count: followed, after it
    seen = events(*({"address": 1, "operation": o, "count_read": read, "count": count} for o, read, count in reads))
    (leak,) = analyse(snapshot(code, objects=live, history=seen), code.symbols).leaks
    sentence = "the counter of this object changed without a traced call: it reads 4 where gets and puts give 3"
    assert (sentence in leak.notes) is noted


def test_what_is_odd_is_noted() -> None:
    code = Code()
    stack = code.stack(1, code.frame("new"))
    live = objects(
        {"address": 1, "initial": 3, "count": 3, "gets": 1, "flags": ObjectFlag.COUNT_UNREAD, "stack": stack}
    )
    (leak,) = analyse(snapshot(code, objects=live), code.symbols).leaks
    assert leak.notes == (
        "created with count 3",
        "the counter of this object could not be read",
        "1 get whose stack was not kept",
    )


def test_copies_without_probe_are_those_of_the_type_in_the_spec() -> None:
    """What is called by its class, found in the target, may have been put in a copy all the same."""
    site = SiteInfo(Operation.CREATE, "obj_new", "server", "obj")
    uncovered = UncoveredInstances("put", "obj", "obj_put", 2, "loops were unrolled")
    snap = snapshot(
        objects=objects({"address": 0x1000, "site": 1}), types={DSO: "file_class"},
        coverage=Coverage(3, (), (uncovered,)), sites=(SiteInfo(0, "", "", None), site),
    )  # fmt: skip
    found = analyse(snap, {})
    (leak,) = found.leaks
    assert (leak.type, leak.state) == ("file_class", "outstanding")
    assert leak.notes[0].startswith("inlined copies have no probe: 2 of obj_put (put)")
    assert found.coverage_gaps == (
        "not all of obj was seen: no probe on 2 inlined copies of obj_put (put: loops were unrolled)",
    )


def test_what_may_have_been_put_by_a_function_without_probe_is_no_leak() -> None:
    site = SiteInfo(Operation.CREATE, "obj_new", "server", "obj", counter=False)
    whole = Unresolved("put", "obj", "obj_put", "the kernel probes no instruction with such a prefix")
    snap = snapshot(
        objects=objects({"address": 0x1000, "site": 1}), types={DSO: "obj"}, coverage=Coverage(3, (whole,)),
        sites=(SiteInfo(0, "", "", None), site),
    )  # fmt: skip
    found = analyse(snap, {})
    (leak,) = found.leaks
    assert (leak.state, leak.unpaired) == ("outstanding", ())
    assert leak.notes[0] == "no probe is on obj_put (put); without a counter its count is not to be relied on"
    assert found.coverage_gaps == (
        "not all of obj was seen: no probe on obj_put (put: the kernel probes no instruction with such a prefix)",
    )


def test_inherited_objects_are_listed_apart() -> None:
    code = Code()
    stack = code.stack(1, code.frame("new"))
    copies = objects({"address": 1, "pid": 813, "gets": 2}, stack=stack)
    found = analyse(snapshot(code, processes=(process(), process(813)), inherited_objects=copies), code.symbols)
    assert [(leak.pid, leak.state, leak.notes) for leak in found.leaks] == [(813, "inherited", ())]
    assert not has_findings(found)


def test_the_types_are_summed_over_processes() -> None:
    code = Code()
    totals = (
        TypeTotals(DSO, 812, 1, 5, 7, 9, 3),
        TypeTotals(DSO, 813, 1, 1, 1, 1, 1, 2, 3),
        TypeTotals(MAP, 812, 1, 1, 0, 1, 1),
    )
    live = objects({"address": 1}, {"address": 2}, stack=code.stack(1, code.frame("new")))
    found = analyse(snapshot(code, type_totals=totals, objects=live), code.symbols)
    assert found.types == (TypeRow("dso", 6, 8, 10, 4, 2), TypeRow("map", 1, 0, 1, 1, 0))
    assert found.notes == (
        "2 gets of something not seen to be made",
        "3 puts of something not seen to be made",
    )


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.sampled_from([(GET, 2), (PUT, 3), (GET, 4), (PUT, 5)]), max_size=6), max_size=12))
def test_merging_loses_neither_objects_nor_calls(histories: list[list[tuple[int, int]]]) -> None:
    leaks = Kit().leaks(*histories)
    assert sum(leak.count for leak in leaks) == len(histories)
    calls = [operation for history in histories for operation, _ in history]
    assert sum(call.count for leak in leaks for call in leak.gets) == calls.count(GET)
    assert sum(call.count for leak in leaks for call in leak.puts) == calls.count(PUT)
    assert all(len({i.references for i in leak.instances}) == 1 for leak in leaks)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**64 - 1), st.integers(0, 5)), max_size=40))
def test_groups_are_the_equal_rows(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array(column, dtype=np.uint64) for column in zip(*rows, strict=True)] or [
        np.zeros(0, dtype=np.uint64)
    ]
    groups = group_rows(*columns)
    expected = sorted(set(rows))
    assert [rows[first] for first in groups.first.tolist()] == expected
    assert [expected[label] for label in groups.label.tolist()] == rows
    assert groups.first.tolist() == [rows.index(row) for row in expected]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=30), st.integers(1, 5))
def test_the_oldest_are_the_first_of_a_sort(rows: list[tuple[int, int]], most: int) -> None:
    times, addresses = (np.array([row[i] for row in rows], dtype=np.uint64) for i in (0, 1))
    chosen = oldest(np.arange(len(rows)), times, addresses, most)
    assert [rows[i] for i in chosen.tolist()] == sorted(rows)[:most]
