"""Which frees are errors for certain, and what is said of their addresses."""

from __future__ import annotations

from typing import Any

import pytest
from hand_made import BINARIES, LOSSES, SITES, Code, blocks, broken_rules, process, snapshot

from tracer.analysis import AnalysisOptions, analyse, has_findings, parse_suppressions
from tracer.model.events import AROUND_SHIFT, ErrorKind, Where
from tracer.model.findings import Findings
from tracer.model.frames import THROUGH_POINTER
from tracer.model.holders import HolderName
from tracer.model.operations import Operation
from tracer.model.snapshot import (
    Binary,
    Coverage,
    Loss,
    Mapping,
    SiteInfo,
    Snapshot,
    UncoveredInstances,
    Unresolved,
)

FREE, PROGRAMS_FREE, POOL_FREE = 3, 4, 5
ALL_SITES = (
    *SITES, SiteInfo(Operation.FREE, "free", "libc.so.6", "free"), SiteInfo(Operation.FREE, "free", "srv", "free"),
    SiteInfo(Operation.FREE, "pool_free", "srv", "pool"),
)  # fmt: skip
AGAIN, FIRST, BIRTH, THREAD_END, BY_LIBRARY = 1, 2, 3, 4, 5


def code() -> Code:
    made = Code()
    start = made.frame("start_thread", binary=2), made.frame("clone3", binary=2)
    for stack, name in ((AGAIN, "again"), (FIRST, "drop"), (BIRTH, "make")):
        made.stack(stack, made.frame(name, f"{name}.c:{stack}"), made.frame("main", "srv.c:9"), made.frame("_start"))
    made.stack(THREAD_END, made.frame(None, binary=2), *start)
    made.stack(BY_LIBRARY, made.frame("fclose", binary=2), made.frame("work", "srv.c:30"), *start)
    return made


def traced(event: dict[str, int], **more: Any) -> Snapshot:
    usual = {"error": ErrorKind.DOUBLE_FREE, "stack": AGAIN, "address": 0x5020, "site": FREE, "time_ns": 900}
    seen = broken_rules({**usual, **event})
    return snapshot(made := code(), **{"errors": seen, "sites": ALL_SITES, "stacks": made.stacks} | more)


def judged(event: dict[str, int], **more: Any) -> Findings:
    seen = traced(event, **more)
    return analyse(seen, code().symbols)


WHOLE = {"birth": BIRTH, "release": FIRST, "block_size": 101}
NOTE = "1 free of something not seen to be made"


def test_a_double_free_tells_its_block_and_its_stacks() -> None:
    (error,) = judged(WHOLE).errors
    assert (error.kind, error.type, error.reason) == ("double-free", None, "a block of 101 bytes")
    stacks = [error.stack, error.released_at or (), error.created_at or ()]
    assert [stack[0].function for stack in stacks] == ["again", "drop", "make"]


def test_a_first_free_that_was_not_looked_at() -> None:
    (error,) = judged({**WHOLE, "release": 0, "block_size": 1}).errors
    assert error.reason == "a block of 1 byte, freed earlier: the place was not kept"
    assert error.released_at is None


def several(*events: dict[str, int]) -> Findings:
    """Judge several frees by `again`, at line 1 where `stack` is AGAIN, at another where it is 9."""
    made = code()
    made.stack(9, made.frame("again", "again.c:9"), made.frame("main", "srv.c:9"), made.frame("_start"))
    usual = {"error": ErrorKind.DOUBLE_FREE, "stack": AGAIN, "address": 0x5020, "site": FREE, "time_ns": 900}
    rows = broken_rules(*({**usual, **WHOLE, **event} for event in events))
    return analyse(snapshot(made, errors=rows, sites=ALL_SITES, stacks=made.stacks), made.symbols)


def test_two_lines_of_one_function_are_two_errors() -> None:
    found = several({}, {"stack": 9}, {}).errors
    assert [(error.count, error.stack[0].line) for error in found] == [(2, 1), (1, 9)]


def test_a_place_that_was_kept_of_some_is_that_of_all_like_them() -> None:
    (error,) = several({"release": 0, "represented": 7}, {"represented": 2}).errors
    assert (error.count, error.reason) == (9, "a block of 101 bytes")
    assert error.released_at is not None


def test_of_two_places_neither_is_that_of_the_rest() -> None:
    found = several({"release": 0, "represented": 7}, {}, {"release": BIRTH}).errors
    assert [(error.count, error.released_at is not None) for error in found] == [(7, False), (1, True), (1, True)]


def test_what_was_made_before_the_trace_has_no_birth() -> None:
    (error,) = judged({"release": FIRST}, mode="attached").errors
    assert (error.created_at, error.reason) == (None, "a block older than the trace")


def test_a_childs_copy_whose_birth_is_not_known() -> None:
    (error,) = judged({"release": FIRST}, processes=(process(forked_from=(811, 1)),)).errors
    assert (error.created_at, error.reason) == (None, "a block that its parent made")


def test_what_glibc_frees_when_a_thread_is_over_is_no_error() -> None:
    for kind in (ErrorKind.DOUBLE_FREE, ErrorKind.INVALID_FREE):
        found = judged({**WHOLE, "error": kind, "stack": THREAD_END})
        assert (found.errors, found.notes) == ((), ())


@pytest.mark.parametrize(("name", "calls"), [(None, THROUGH_POINTER), ("__nptl_deallocate_tsd", None)])
def test_what_the_library_is_given_free_for_is_one(name: str | None, calls: str | None) -> None:
    """As a destructor of keys: nothing of the program is on the stack."""
    made = code()
    made.stack(9, made.frame(name, binary=2, calls=calls), made.frame("start_thread", binary=2))
    seen = traced({**WHOLE, "stack": 9})
    (error,) = analyse(Snapshot(**{**seen.__dict__, "stacks": made.stacks}), made.symbols).errors
    assert error.kind == "double-free"


def test_what_the_library_frees_for_the_program_is_one() -> None:
    (error,) = judged({**WHOLE, "stack": BY_LIBRARY}).errors
    assert error.kind == "double-free"


@pytest.mark.parametrize("names", [("tcache_thread_shutdown", "start_thread"), (None, None)])
def test_the_end_of_a_thread_of_a_static_program(names: tuple[str | None, ...]) -> None:
    made = code()
    made.stack(9, *(made.frame(name) for name in names))
    seen = traced({**WHOLE, "stack": 9, "site": PROGRAMS_FREE}, binaries=(Binary(1, "/usr/bin/srv"),))
    found = analyse(Snapshot(**{**seen.__dict__, "stacks": made.stacks}), made.symbols)
    assert found.errors == ()
    assert found.notes == (() if names[0] else (NOTE,))


def test_a_double_free_in_a_thread_of_a_static_program() -> None:
    made = code()
    made.stack(9, *(made.frame(name) for name in ("again", "work", "start_thread", "clone3")))
    seen = traced({**WHOLE, "stack": 9, "site": PROGRAMS_FREE}, binaries=(Binary(1, "/usr/bin/srv"),))
    (error,) = analyse(Snapshot(**{**seen.__dict__, "stacks": made.stacks}), made.symbols).errors
    assert error.kind == "double-free"


def test_a_static_program_beside_others_that_are_not() -> None:
    """As below a shell: an allocator in libc's place is not judged, but only where there is a libc."""
    mappings = (Mapping(812, 1, 0x1000, 0x2000, 0, 1, executable=True, from_ns=0),
                Mapping(811, 1, 0x1000, 0x2000, 0, 2, executable=True, from_ns=0))  # fmt: skip
    (error,) = judged({**WHOLE, "site": PROGRAMS_FREE}, mappings=mappings).errors
    assert error.kind == "double-free"


def test_a_static_programs_own_double_free() -> None:
    (error,) = judged({**WHOLE, "site": PROGRAMS_FREE}, binaries=(Binary(1, "/usr/bin/srv"),)).errors
    assert error.kind == "double-free"


def test_an_allocator_in_place_of_libcs_is_not_judged() -> None:
    found = judged({**WHOLE, "site": PROGRAMS_FREE})
    assert (found.errors, found.notes) == ((), (NOTE,))


def test_nothing_is_judged_where_anything_was_lost() -> None:
    found = judged({**WHOLE, "represented": 7}, losses=LOSSES)
    assert (found.errors, found.notes) == ((), ("7 frees of something not seen to be made",))


@pytest.mark.parametrize(("pids", "forked_from", "is_told"), [
    ((813,), None, True), ((813, 812), None, False), ((), None, False), ((811,), (811, 1), False),
    ((810,), (811, 1), True),
])  # fmt: skip
def test_what_was_lost_of_another_process_says_nothing(
    pids: tuple[int, ...], forked_from: tuple[int, int] | None, is_told: bool
) -> None:
    """Of the process itself it does, and of one whose memory it began as a copy of."""
    processes = process(811, forked_from=(809, 1)), process(forked_from=forked_from), process(813, forked_from=(812, 1))
    found = judged(WHOLE, losses=(Loss("child that ran on", 1, "none", pids=pids),), processes=processes)
    assert len(found.errors) == is_told


def test_processes_that_are_said_to_be_copies_of_each_other_are_not_whole() -> None:
    """Of a damaged recording."""
    processes = process(forked_from=(813, 1)), process(813, forked_from=(812, 1))
    seen = snapshot(code(), losses=(Loss("child that ran on", 1, "none", pids=(7,)),), processes=processes)
    assert not seen.is_whole(812, 1)


REFUSED = "the kernel refused the probe: Cannot allocate memory"


@pytest.mark.parametrize(
    ("event", "coverage", "is_told"),
    [
        ({}, Coverage(unresolved=(Unresolved("alloc", "calloc", "calloc", REFUSED),)), False),
        ({}, Coverage(unresolved=(Unresolved("realloc", "realloc", "realloc", REFUSED),)), False),
        ({}, Coverage(unresolved=(Unresolved("alloc", "pool", "pool_alloc", REFUSED),)), True),
        ({}, Coverage(unresolved=(Unresolved("free", "cfree", "cfree", REFUSED),)), True),
        (
            {"site": POOL_FREE, "group": 2},
            Coverage(unresolved=(Unresolved("alloc", "calloc", "calloc", REFUSED),)),
            True,
        ),
        (
            {"site": POOL_FREE, "group": 2},
            Coverage(uncovered_instances=(UncoveredInstances("alloc", "pool", "pool_alloc", 3, "optimised away"),)),
            False,
        ),
    ],
)
def test_what_makes_blocks_where_no_probe_is_may_have_made_this_one(
    event: dict[str, int], coverage: Coverage, is_told: bool
) -> None:
    found = judged({**WHOLE, **event}, coverage=coverage)
    assert [error.kind for error in found.errors] == ["double-free"] * is_told
    assert found.notes == (() if is_told else (NOTE,))


@pytest.mark.parametrize(("mode", "is_told"), [("launched", False), ("attached", True)])
def test_a_described_allocator_that_frees_what_it_was_not_seen_to_make(mode: str, is_told: bool) -> None:
    """Another function makes blocks too; with -p they may be older."""
    event = {**WHOLE, "site": POOL_FREE, "group": 2}
    found = judged(event, mode=mode, processes=(process(unknown_frees=1),))
    assert [error.kind for error in found.errors] == ["double-free"] * is_told


def test_code_that_is_in_no_binary_known_may_be_glibcs() -> None:
    made = code()
    made.stack(9, made.frame(None, binary=2), made.frame("handler", binary=3))
    seen = traced({**WHOLE, "stack": 9}, binaries=BINARIES[:2])
    found = analyse(Snapshot(**{**seen.__dict__, "stacks": made.stacks}), made.symbols)
    assert (found.errors, found.notes) == ((), (NOTE,))


def test_a_described_allocator_is_named() -> None:
    (error,) = judged({**WHOLE, "site": POOL_FREE, "group": 2}).errors
    assert error.type == "pool"


INVALID = {"error": ErrorKind.INVALID_FREE}
LIVE = blocks(
    {"address": 0x5000, "size": 96, "stack": BIRTH, "time_ns": 500},
    {"address": 0x4000, "size": 0x2000, "stack": FIRST, "time_ns": 500, "pid": 811},
)


def test_an_address_inside_a_live_block() -> None:
    (error,) = judged(INVALID, allocations=LIVE).errors
    assert (error.kind, error.reason) == ("invalid-free", "32 bytes inside a block of 96")
    assert [frame.function for frame in error.created_at or ()][:2] == ["malloc", "make"]


@pytest.mark.parametrize("change", [{"time_ns": 499}, {"address": 0x5060}, {"pid": 813}, {"address": 0x10}])
def test_an_address_in_no_block_of_that_time(change: dict[str, int]) -> None:
    found = judged({**INVALID, **change}, allocations=LIVE)
    assert (found.errors, found.notes) == ((), (NOTE,))


@pytest.mark.parametrize("group", [2, 0])
def test_a_block_that_another_allocator_made(group: int) -> None:
    made = blocks({"address": 0x5020, "size": 96, "stack": BIRTH, "time_ns": 500, "group": group, "site": POOL_FREE})
    found = judged(INVALID, allocations=made)
    assert [(error.kind, error.reason) for error in found.errors] == (
        [("mismatched-free", "a block of 96 bytes that pool made")] if group else []
    )


def test_an_address_on_the_stack() -> None:
    (error,) = judged({**INVALID, "where": Where.ON_STACK}).errors
    assert error.reason == "on the stack of the thread that frees it"


def test_the_function_whose_frame_an_address_is_in() -> None:
    (error,) = judged({**INVALID, "where": Where.ON_STACK | Where.ABORTED, "birth": BIRTH}).errors
    assert (error.reason, error.created_at) == ("on the stack of make", None)


def test_an_address_inside_a_block_that_was_alive_then() -> None:
    (error,) = judged({**INVALID, "where": 24 << AROUND_SHIFT, "birth": BIRTH, "block_size": 96}).errors
    assert error.reason == "24 bytes inside a block of 96"
    assert error.created_at is not None


def test_an_address_that_malloc_never_gives() -> None:
    (error,) = judged({**INVALID, "address": 0x5008}).errors
    assert error.reason == "never allocated: malloc's blocks are at multiples of 16 bytes"


def test_an_address_of_nothing_known_in_which_the_library_aborted() -> None:
    (error,) = judged({**INVALID, "where": Where.ABORTED}).errors
    assert error.reason == "at no block that is known; the C library ended the program"


def test_an_address_of_no_memory() -> None:
    (error,) = judged({**INVALID, "where": Where.NO_MEMORY}).errors
    assert error.reason == "never allocated: no memory is there"
    assert judged({**INVALID, "where": Where.NO_MEMORY}, mode="attached").errors == ()
    (error,) = judged({**INVALID, "where": Where.NO_MEMORY}, mappings=(mapping(4),)).errors
    assert error.reason == "in the data of libstdc++.so.6"


def test_where_something_was_lost_an_abort_is_certain_of_the_stack_alone() -> None:
    assert judged({**INVALID, "where": Where.ABORTED}, losses=LOSSES).errors == ()
    assert len(judged({**INVALID, "where": 3, "birth": BIRTH}, losses=LOSSES).errors) == 1


def test_what_may_be_older_than_the_trace_is_an_error_where_that_is_certain() -> None:
    aborted = {"where": Where.ABORTED}
    on_stack = {"where": Where.ABORTED | Where.ON_STACK}
    for certain in ({"address": 0x5008}, {**on_stack, "birth": BIRTH}, {"where": 24 << AROUND_SHIFT, "birth": BIRTH}):
        assert len(judged({**INVALID, **certain}, mode="attached").errors) == 1
    for other in ({}, {"where": Where.ON_STACK}, aborted, on_stack):
        assert judged({**INVALID, **other}, mode="attached").errors == ()
    assert len(judged({**INVALID, **aborted}, mode="attached", mappings=(mapping(4),)).errors) == 1
    assert judged(INVALID, mode="attached", mappings=(mapping(4),)).errors == ()


def mapping(binary: int, **more: Any) -> Mapping:
    return Mapping(812, 1, 0x5000, 0x6000, 0, binary, False, **{"from_ns": 0, **more})


def test_an_address_in_a_binarys_data() -> None:
    (error,) = judged(INVALID, mappings=(mapping(4),)).errors
    assert error.reason == "in the data of libstdc++.so.6"


@pytest.mark.parametrize(("name", "told"), [("table", "table"), ("machines.host[]", "machines.host")])
def test_an_address_in_a_variable(name: str, told: str) -> None:
    (error,) = judged(
        {**INVALID, "serial": 2}, mappings=(mapping(4),),
        holder_names=(HolderName("other"), HolderName(name)),
    ).errors  # fmt: skip
    assert error.reason == f"in variable {told} of libstdc++.so.6"


@pytest.mark.parametrize("where", [mapping(3), mapping(4, until_ns=800), mapping(4, from_ns=901)])
def test_the_loaders_own_blocks_and_what_was_mapped_at_other_times(where: Mapping) -> None:
    assert judged(INVALID, mappings=(where,)).errors == ()


def test_an_empty_trace_has_none() -> None:
    assert analyse(snapshot(sites=ALL_SITES), {}).errors == ()


@pytest.mark.parametrize(
    ("line", "applies"),
    [
        ("error:double-free", True), ("error:double-*", True), ("error:double-free:again", True),
        ("error:double-free:^agai", True), ("error:over-put", False), ("error:double-free:drop", False),
        ("error:double", False), ("leak:again", False),
    ],
)  # fmt: skip
def test_errors_are_suppressed_by_kind_and_by_place(line: str, applies: bool) -> None:
    seen, rules = traced(WHOLE), parse_suppressions(line, "s.txt")
    found = analyse(seen, code().symbols, AnalysisOptions(suppressions=rules))
    assert (has_findings(found), len(found.errors)) == (not applies, int(not applies))
    said = f"1 error suppressed: {line}" if applies else f"suppression {line} (s.txt:1) matched nothing"
    assert found.notes == (said,)
