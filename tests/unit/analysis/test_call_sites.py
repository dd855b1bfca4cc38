"""Entries tell who made what, and at which line; ids outlive lines that move."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hand_made import CREATE, DSO, MMAP, SITES, Code, blocks, events, objects, process, records, snapshot

from tracer.analysis import analyse
from tracer.analysis.comparison import compare
from tracer.model.findings import Findings, Leak
from tracer.model.operations import Operation
from tracer.model.reachability import KIND_ALLOCATION, REACH_RECORD, Reach
from tracer.model.snapshot import SiteInfo
from tracer.report import TextOptions, write_json, write_text
from tracer.report.json_reader import read_json


def made_at(*lines: int | None, sizes: int = 8, **more: object) -> Findings:
    """One block from each line of `f`; None: code without lines."""
    code = Code()
    main = code.frame("main", "m.c:9")
    rows = []
    for number, line in enumerate(lines, start=1):
        place = None if line is None else f"f.c:{line}"
        code.stack(number, code.frame("f", place), main)
        rows.append({"address": 64 * number, "size": sizes, "stack": number})
    return analyse(snapshot(code, allocations=blocks(*rows), **more), code.symbols)  # type: ignore[arg-type]


def by_line(found: Findings) -> dict[int | None, Leak]:
    return {leak.callers[0].line: leak for leak in found.leaks}


def test_lines_are_entries_and_equal_lines_one() -> None:
    found = made_at(10, 20, 20, 30)
    assert {line: leak.count for line, leak in by_line(found).items()} == {10: 1, 20: 2, 30: 1}
    assert len({leak.id for leak in found.leaks}) == 3


def test_lines_of_callers_are_call_sites_too() -> None:
    code = Code()
    f = code.frame("f", "f.c:5")
    for stack, line in ((1, 7), (2, 8)):
        code.stack(stack, f, code.frame("main", f"m.c:{line}"))
    live = blocks({"address": 64, "stack": 1}, {"address": 128, "stack": 2})
    leaks = analyse(snapshot(code, allocations=live), code.symbols).leaks
    assert sorted(leak.stack[2].line or 0 for leak in leaks) == [7, 8]


def test_without_lines_the_offset_in_the_function_tells() -> None:
    code = Code()
    main = code.frame("main")
    keys = [code.frame("f") for _ in range(3)]
    for key, offset in zip(keys, (4, 4, 12), strict=True):
        (frame,) = code.symbols[key]
        code.symbols[key] = (replace(frame, offset=offset),)
    for stack, key in enumerate(keys, start=1):
        code.stack(stack, key, main)
    live = blocks(*({"address": 64 * n, "stack": n} for n in (1, 2, 3)))
    leaks = analyse(snapshot(code, allocations=live), code.symbols).leaks
    assert sorted((leak.stack[1].offset, leak.count) for leak in leaks) == [(4, 2), (12, 1)]


def test_ids_stay_when_lines_move() -> None:
    before, after = by_line(made_at(10, 20)), by_line(made_at(15, 32))
    assert [before[10].id, before[20].id] == [after[15].id, after[32].id]
    assert by_line(made_at(99))[99].id == before[10].id


def test_a_line_that_something_holds_takes_no_number_from_a_leak() -> None:
    held = records(REACH_RECORD, [
        {"address": 64, "kind": KIND_ALLOCATION, "reach": Reach.REACHABLE, "pid": 812, "generation": 1},
        {"address": 128, "kind": KIND_ALLOCATION, "reach": Reach.LOST, "pid": 812, "generation": 1},
    ])  # fmt: skip
    assert by_line(made_at(10, 20, reach=held))[20].id == by_line(made_at(20))[20].id


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ((20,), (10, 20), {10: "new", 20: "same"}), ((10, 20), (20,), {10: "gone", 20: "same"}),
        ((10, 20), (15, 32), {15: "same", 32: "same"}), ((10, 20), (20, 30), {20: "same", 30: "same"}),
        ((10, 20), (15, 25, 40), {15: "same", 25: "same", 40: "new"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("through_json", [False, True])
def test_a_moved_line_is_no_new_leak(
    before: tuple[int, ...], after: tuple[int, ...], words: dict[int, str], through_json: bool
) -> None:
    old = made_at(*before)
    if through_json:
        stream = io.StringIO()
        write_json(old, stream)
        old = read_json(stream.getvalue().encode(), "old.json")
    changes = compare(old, made_at(*after)).changes
    assert {change.stack[1].line: change.word for change in changes} == words


def test_the_function_that_created_it_is_shown_first() -> None:
    code = Code()
    stack = code.stack(1, code.frame("make_doc", "jsonc.c:7"), code.frame("main", "jsonc.c:18"))
    sites = (*SITES, SiteInfo(Operation.CREATE, "json_object_new_string", "libjson-c.so.5", "dso", address=0x7A0))
    snap = snapshot(code, objects=objects({"stack": stack, "site": len(SITES)}), sites=sites)
    found = analyse(snap, code.symbols)
    (leak,) = found.leaks
    assert [frame.function for frame in leak.stack] == ["json_object_new_string", "make_doc", "main"]
    assert (leak.maker, leak.own_frame, leak.stack[0].module) == ("json_object_new_string", 1, "libjson-c.so.5")
    assert (leak.stack[0].address, leak.stack[0].offset) == (0x7A0, 0)
    stream = io.StringIO()
    write_text(found, stream, TextOptions(width=80, color=False))
    lines = stream.getvalue().splitlines()
    start = next(index for index, line in enumerate(lines) if "created at" in line)
    assert [line.split()[0] for line in lines[start + 1 : start + 4]] == ["json_object_new_string", "make_doc", "main"]
    assert lines[start + 2].endswith("<-- your code")


def test_functions_that_create_differ_in_id_and_allocators_do_not() -> None:
    """An allocator's name is the type already, and a stub has one name everywhere."""
    code = Code()
    code.stack(1, code.frame("f", "f.c:1"))
    created = [SiteInfo(Operation.CREATE, name, "libx.so", "dso") for name in ("x_new", "x_copy")]
    sites = (*SITES, *created)
    live = objects(*({"address": 64 * n, "stack": 1, "site": len(SITES) + n} for n in (0, 1)))
    leaks = analyse(snapshot(code, objects=live, sites=sites), code.symbols).leaks
    assert sorted(leak.maker or "" for leak in leaks) == ["x_copy", "x_new"]
    assert len({leak.id for leak in leaks}) == 2
    stub = analyse(snapshot(code, objects=objects({"stack": 1, "site": CREATE, "type": DSO})), code.symbols).leaks[0]
    assert stub.id not in {leak.id for leak in leaks} and stub.maker == "__refcnt__init"


def test_a_maker_that_is_on_the_stack_is_not_said_twice() -> None:
    code = Code()
    stack = code.stack(1, code.frame("mmap", binary=2), code.frame("f", "f.c:1"))
    (leak,) = analyse(snapshot(code, allocations=blocks({"stack": stack, "site": MMAP})), code.symbols).leaks
    assert [frame.function for frame in leak.stack] == ["mmap", "f"] and leak.maker is None


def test_a_stack_that_was_lost_has_no_maker_alone() -> None:
    code = Code()
    (leak,) = analyse(snapshot(code, allocations=blocks({"stack": 99})), code.symbols).leaks
    assert (leak.stack, leak.maker) == ((), None)


def test_processes_share_the_number_of_a_call_site() -> None:
    code = Code()
    for stack, line in ((1, 5), (2, 6)):
        code.stack(stack, code.frame("f", f"f.c:{line}"))
    live = blocks({"stack": 1, "address": 64}, {"stack": 2, "address": 64, "pid": 813})
    family = (process(), process(pid=813, parent=812))
    leaks = analyse(snapshot(code, allocations=live, processes=family), code.symbols).leaks
    assert len({leak.id for leak in leaks}) == 2


def test_lines_that_read_the_same_are_printed_once_with_their_count() -> None:
    """Two calls on one line, and two ways to it that part beyond what is shown: one line, of nine gets."""
    code = Code()
    main = code.frame("main", "m.c:9")
    born = code.stack(1, code.frame("make", "m.c:1"), main)
    outer = [code.frame(f"f{i}", f"f.c:{i}") for i in range(3)]
    ways = [code.frame("way", f"w.c:{line}") for line in (7, 8)]
    code.stack(2, code.frame("keep", "k.c:11"), *outer, ways[0], main)
    code.stack(3, code.frame("keep", "k.c:11"), *outer, ways[0], main)
    code.stack(4, code.frame("keep", "k.c:11"), *outer, ways[1], main)
    gets = [{"address": 0x1000, "operation": Operation.GET, "stack": 2 + i % 3} for i in range(9)]
    live = objects({"address": 0x1000, "stack": born, "count": 10, "gets": 9})
    found = analyse(snapshot(code, objects=live, history=events(*gets)), code.symbols)
    (leak,) = found.leaks
    assert [(call.stack[4].line, call.count) for call in leak.gets] == [(7, 6), (8, 3)]
    stream = io.StringIO()
    write_text(found, stream, TextOptions(width=80, color=False))
    lines = stream.getvalue().splitlines()
    start = next(index for index, line in enumerate(lines) if line.strip() == "9 gets")
    assert [line.strip() for line in lines[start:] if "keep" in line] == [
        "9  keep k.c:11 < f0 f.c:0 < f1 f.c:1 < f2 f.c:2 < ..."
    ]
    never = [line for line in lines[:start] if line.strip().startswith("keep k.c:11")]
    assert len(never) <= 1
