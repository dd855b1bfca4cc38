"""Merging of blocks: counts, bytes, sizes, samples, states."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hand_made import MMAP, SECOND, Code, blocks, mapped, process, records, snapshot
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.analysis import AnalysisOptions, analyse, has_findings
from tracer.model.findings import AllocationTotals
from tracer.model.records import ALLOCATION_RECORD, TOTALS_RECORD, MappedFlag, StackStatus


def test_an_empty_snapshot_gives_empty_findings() -> None:
    found = analyse(snapshot(processes=(), events_seen=0), {})
    assert (found.leaks, found.errors, found.suppressed, found.types, found.notes) == ((), (), (), (), ())
    assert found.allocations == AllocationTotals(0, 0, 0, 0)
    assert found.complete
    assert not has_findings(found)


def test_blocks_of_one_stack_become_one_entry() -> None:
    code = Code()
    stack = code.stack(1, code.frame("malloc", binary=2), code.frame("f", "f.c:3"))
    rows = [{"address": 0x1000 + i, "size": 10 + i, "time_ns": (13 - i) * SECOND, "tid": i} for i in range(13)]
    found = analyse(snapshot(code, allocations=blocks(*rows, stack=stack)), code.symbols, AnalysisOptions(samples=3))
    (leak,) = found.leaks
    assert (leak.kind, leak.type, leak.pid, leak.state) == ("allocation", "malloc", 812, "leaked")
    assert (leak.count, leak.bytes, leak.size_min, leak.size_max) == (13, 208, 10, 22)
    assert [f.function for f in leak.stack] == ["malloc", "f"]
    assert (leak.own_frame, leak.stack_status, leak.stack_complete) == (1, "complete", True)
    assert [(i.address, i.size, i.references, i.age_ns, i.thread) for i in leak.instances] == [
        (0x100C, 22, None, 60 * SECOND, 12),
        (0x100B, 21, None, 59 * SECOND, 11),
        (0x100A, 20, None, 58 * SECOND, 10),
    ]
    assert found.allocations == AllocationTotals(0, 0, 13, 208)
    assert has_findings(found)


def test_entries_are_sorted_by_bytes_then_count() -> None:
    code = Code()
    for id_ in (1, 2, 3):
        code.stack(id_, code.frame(f"f{id_}", f"f.c:{id_}"))
    live = blocks(
        {"address": 1, "size": 30, "stack": 1},
        {"address": 2, "size": 10, "stack": 2}, {"address": 3, "size": 20, "stack": 2},
        {"address": 4, "size": 31, "stack": 3},
    )  # fmt: skip
    found = analyse(snapshot(code, allocations=live), code.symbols)
    assert [(leak.stack[1].function, leak.bytes, leak.count) for leak in found.leaks] == [
        ("f3", 31, 1), ("f2", 30, 2), ("f1", 30, 1),
    ]  # fmt: skip


def test_allocators_and_processes_are_kept_apart() -> None:
    code = Code()
    stack = code.stack(1, code.frame("f", "f.c:1"))
    live = blocks(
        {"address": 1, "size": 1}, {"address": 1, "size": 2, "pid": 813}, {"address": 1, "size": 4, "generation": 2},
        {"address": 2, "size": 8, "site": MMAP}, stack=stack,
    )  # fmt: skip
    found = analyse(snapshot(code, allocations=live), code.symbols)
    assert [(leak.pid, leak.type, leak.bytes) for leak in found.leaks] == [
        (812, "mmap", 8), (812, "malloc", 4), (813, "malloc", 2), (812, "malloc", 1),
    ]  # fmt: skip
    assert len({leak.id for leak in found.leaks}) == 2


def test_two_lines_of_one_function_are_two_entries() -> None:
    code = Code()
    malloc, main = code.frame("malloc", binary=2), code.frame("main", "m.c:9")
    code.stack(1, malloc, code.frame("f", "/src/f.c:10"), main)
    code.stack(2, malloc, code.frame("f", "/src/f.c:20"), main)
    code.stack(3, malloc, code.frame("f", "/src/f.c:20"), main)
    live = blocks(*({"address": i, "size": size, "stack": i} for i, size in ((1, 100), (2, 7), (3, 5))))
    leaks = analyse(snapshot(code, allocations=live), code.symbols).leaks
    assert [(leak.count, leak.bytes, leak.stack[1].line) for leak in leaks] == [(1, 100, 10), (2, 12, 20)]
    assert len({leak.id for leak in leaks}) == 2


def test_made_and_freed_come_from_the_stack() -> None:
    code = Code()
    stack = code.stack(1, code.frame("f", "f.c:1"))
    totals = records(TOTALS_RECORD, [{"stack": stack, "made": 19, "freed": 17}])
    live = blocks({"address": 1}, {"address": 2}, stack=stack, size=8)
    (leak,) = analyse(snapshot(code, allocations=live, totals=totals), code.symbols).leaks
    assert (leak.made, leak.freed) == (19, 17)
    two = snapshot(code, allocations=live[:1], totals=totals, processes=(process(), process(813)))
    (leak,) = analyse(two, code.symbols).leaks
    assert (leak.made, leak.freed) == (None, None), "another process allocated there too, and nobody knows how often"


@pytest.mark.parametrize(
    ("mode", "target_ended", "changes", "state"),
    [
        ("launched", True, {}, "leaked"),
        ("launched", True, {"signal": 9, "exit_code": None}, "outstanding"),
        ("launched", True, {"by_exec": True}, "alive-at-exec"),
        ("launched", True, {"ended_ns": None}, "outstanding"),
        ("launched", False, {"ended_ns": None}, "outstanding"),
        ("launched", False, {}, "outstanding"),
        ("attached", True, {}, "outstanding"),
        ("attached", False, {"ended_ns": None}, "outstanding"),
        ("attached", True, {"by_exec": True}, "alive-at-exec"),
    ],
)
def test_leaked_is_said_only_of_a_launched_target_that_ended(
    mode: str, target_ended: bool, changes: dict[str, object], state: str
) -> None:
    code = Code()
    live = blocks({"address": 1, "size": 1, "stack": code.stack(1, code.frame("f"))})
    snap = snapshot(code, mode=mode, target_ended=target_ended, processes=(process(**changes),), allocations=live)
    found = analyse(snap, code.symbols)
    assert [leak.state for leak in found.leaks] == [state]
    assert has_findings(found) is (state == "leaked")


def test_what_a_child_inherits_is_listed_and_never_counted() -> None:
    code = Code()
    stack = code.stack(1, code.frame("f", "f.c:1"))
    snap = snapshot(code, inherited=blocks({"address": 1, "size": 5, "pid": 813}, stack=stack))
    found = analyse(snap, code.symbols)
    assert [(leak.state, leak.pid, leak.bytes) for leak in found.leaks] == [("inherited", 813, 5)]
    assert found.allocations == AllocationTotals(0, 0, 0, 0)
    assert not has_findings(found)


def test_mappings_are_an_own_kind_and_come_last() -> None:
    code = Code()
    stack = code.stack(1, code.frame("mmap", binary=2), code.frame("f", "f.c:1"))
    pieces = mapped({"start": 0x7000, "length": 4096}, {"start": 0x9000, "length": 8192}, stack=stack)
    snap = snapshot(code, mapped=pieces, allocations=blocks({"address": 1, "size": 1, "stack": stack}))
    first, second = analyse(snap, code.symbols).leaks
    assert first.kind == "allocation"
    assert (second.kind, second.type, second.count, second.bytes) == ("mapping", "mmap", 2, 12288)
    assert [i.address for i in second.instances] == [0x7000, 0x9000]


def test_a_forked_childs_copy_of_a_mapping_is_no_leak() -> None:
    code = Code()
    stack = code.stack(1, code.frame("mmap", binary=2), code.frame("f", "f.c:1"))
    own = {"start": 0x9000, "length": 8192, "pid": 813, "flags": 0x22}
    copy = {"start": 0x7000, "length": 4096, "pid": 813, "flags": 0x22 | MappedFlag.INHERITED}
    found = analyse(snapshot(code, mapped=mapped(copy, own, stack=stack)), code.symbols)
    assert [(leak.state, leak.bytes) for leak in found.leaks] == [("outstanding", 8192), ("inherited", 4096)]
    assert found.survivors[-1].bytes == 8192
    alone = analyse(snapshot(code, mapped=mapped(copy, stack=stack)), code.symbols)
    assert [leak.state for leak in alone.leaks] == ["inherited"] and alone.survivors == ()
    assert not has_findings(alone)


def test_an_unknown_stack_is_empty_and_says_so() -> None:
    (leak,) = analyse(snapshot(allocations=blocks({"address": 1, "size": 1, "stack": 99})), {}).leaks
    assert (leak.stack, leak.stack_complete, leak.stack_status, leak.own_frame) == ((), False, "lost", None)


@pytest.mark.parametrize(
    ("status", "word", "complete"),
    [
        (StackStatus.COMPLETE, "complete", True), (StackStatus.FRAME_POINTER, "frame-pointer", True),
        (StackStatus.TRUNCATED, "truncated", False), (StackStatus.NO_TABLE, "no-table", False),
        (StackStatus.FAULT, "fault", False), (StackStatus.UNSUPPORTED, "unsupported", False),
    ],
)  # fmt: skip
def test_a_stack_that_was_cut_says_why(status: StackStatus, word: str, complete: bool) -> None:
    code = Code()
    stack = code.stack(1, code.frame("f"), status=status)
    (leak,) = analyse(snapshot(code, allocations=blocks({"address": 1, "stack": stack})), code.symbols).leaks
    assert (leak.stack_status, leak.stack_complete) == (word, complete)


def test_a_frame_without_symbols_keeps_its_binary_and_address() -> None:
    code = Code()
    stack = code.stack(1, 2 << 48 | 0x1234, 0x7FFF0000)
    (leak,) = analyse(snapshot(code, allocations=blocks({"address": 1, "stack": stack})), {}).leaks
    libc, nowhere = leak.callers
    assert (libc.function, libc.module, libc.address, libc.build_id) == (None, "libc.so.6", 0x1234, "bb22")
    assert (nowhere.function, nowhere.module, nowhere.address) == (None, None, 0x7FFF0000)
    assert libc.why_unknown == "not symbolized"


BLOCK = st.tuples(
    st.integers(0, 2**40),
    st.integers(0, 2**57),
    st.integers(0, 3),
    st.integers(0, 4),
    st.integers(0, 1),
    st.integers(0, 9),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(BLOCK, max_size=60), st.integers(1, 4))
def test_merging_loses_neither_blocks_nor_bytes(rows: list[tuple[int, ...]], samples: int) -> None:
    code = Code()
    shared = code.frame("shared", "s.c:1")
    for id_ in range(4):
        code.stack(id_, code.frame("f" if id_ < 2 else f"f{id_}", f"f.c:{max(id_, 1)}"), shared)
    live = np.zeros(len(rows), dtype=ALLOCATION_RECORD)
    for name, column in zip(
        ("address", "size", "stack", "pid", "site", "time_ns"), zip(*rows, strict=True), strict=False
    ):
        live[name] = column
    leaks = analyse(snapshot(code, allocations=live), code.symbols, AnalysisOptions(samples=samples)).leaks
    expected = Counter[tuple[int, str, str]]()
    sizes = Counter[tuple[int, str, str]]()
    for _, size, stack, pid, site, _ in rows:
        function = {0: "f", 1: "f", 2: "f2", 3: "f3"}.get(stack, "")
        expected[pid, ("malloc", "mmap")[site], function] += 1
        sizes[pid, ("malloc", "mmap")[site], function] += size
    keys = [(leak.pid, leak.type, leak.callers[0].function if leak.stack else "") for leak in leaks]
    assert dict(zip(keys, (leak.count for leak in leaks), strict=True)) == expected
    assert dict(zip(keys, (leak.bytes for leak in leaks), strict=True)) == sizes
    assert all(len(leak.instances) == min(samples, leak.count) for leak in leaks)
    again = analyse(snapshot(code, allocations=live[::-1]), code.symbols, AnalysisOptions(samples=samples)).leaks
    assert [(a.id, a.count, a.bytes, a.notes) for a in again] == [(b.id, b.count, b.bytes, b.notes) for b in leaks]
