"""Calls that no probe sees: what they may have made is not called clean, and what they may have freed no leak."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hand_made import Code, blocks, mapped, snapshot

from tracer.analysis import analyse
from tracer.analysis.policy import parse_policy
from tracer.model.findings import Findings
from tracer.model.operations import Operation
from tracer.model.snapshot import (
    Coverage,
    Loss,
    Missing,
    SiteInfo,
    TypeTotals,
    UncoveredInstances,
    Unresolved,
    Untraced,
)
from tracer.report.text import write_text
from tracer.report.text_options import TextOptions
from tracer.report.verdict_line import verdict

WHY = "the kernel refused the probe: Cannot allocate memory"
POOL_ALLOC = 1
SITES = (SiteInfo(0, "", "", None), SiteInfo(Operation.ALLOC, "pool_alloc", "srv", "pool"))


def unresolved(operation: str, type_: str, function: str) -> Coverage:
    return Coverage(3, (Unresolved(operation, type_, function, WHY),))


def lines_of(findings: Findings) -> list[str]:
    stream = io.StringIO()
    write_text(findings, stream, TextOptions(width=200))
    return stream.getvalue().splitlines()


def test_functions_that_lack_a_probe_for_one_reason_are_named_together() -> None:
    makers = [("alloc", f"make_{i}", WHY) for i in range(10)]
    calls = [*makers, ("realloc", "grow", WHY), ("alloc", "late", "is an IFUNC")]
    missed = tuple(Unresolved(operation, function, function, why) for operation, function, why in calls)
    found = analyse(snapshot(coverage=Coverage(3, missed)), {})
    heap = ", ".join(f"make_{i}" for i in range(8))
    assert found.coverage_gaps == (
        f"not all of the heap was seen: no probe on {heap}, 2 more (alloc: {WHY}); grow (realloc: {WHY}); "
        "late (alloc: is an IFUNC)",
    )


@pytest.mark.parametrize(("operation", "type_", "function", "named"), [
    ("create", "conn", "conn_new", "conn"),
    ("create", "", "__refcnt__init", "what stubs count"),
    ("alloc", "calloc", "calloc", "the heap"),
    ("alloc", "calloc", "calloc.constprop.0", "the heap"),
    ("realloc", "realloc", "realloc", "the heap"),
    ("alloc", "pool", "pool_alloc", "pool"),
    ("map", "mmap", "mmap64", "the mappings"),
    ("remap", "mremap", "mremap", "the mappings"),
])  # fmt: skip
def test_what_may_have_been_made_unseen_is_not_clean(operation: str, type_: str, function: str, named: str) -> None:
    found = analyse(snapshot(coverage=unresolved(operation, type_, function)), {})
    lines = lines_of(found)
    assert lines[0] == f"refleak: no leak found, but not all of {named} was seen"
    assert lines[1].strip() == f"not all of {named} was seen: no probe on {function} ({operation}: {WHY})"
    assert "data     as far as seen: 2,204,117 events, 0 lost" in lines
    assert verdict(found).style == "warn"
    assert parse_policy("incomplete").broken_by(found) == (f"not all of {named} was seen",)


@pytest.mark.parametrize(("operation", "type_", "function"), [
    ("counter", "conn", "refs"), ("put", "conn", "conn_put"), ("free", "free", "free"),
    ("unwinder", "", "/lib/libx.so"),
])  # fmt: skip
def test_of_what_did_not_occur_nothing_can_have_ended(operation: str, type_: str, function: str) -> None:
    found = analyse(snapshot(coverage=unresolved(operation, type_, function)), {})
    assert (verdict(found).text, verdict(found).style) == ("refleak: clean", "good")
    assert parse_policy("incomplete").broken_by(found) == ()


def test_a_type_of_which_gets_went_unseen_is_not_clean() -> None:
    coverage = Coverage(3, (), (UncoveredInstances("get", "dso", "dso_get", 2, "loops were unrolled"),))
    types, totals = {7: "dso"}, (TypeTotals(7, 812, 1, created=3, destroyed=3),)
    found = analyse(snapshot(coverage=coverage, types=types, type_totals=totals), {})
    assert verdict(found).text == "refleak: no leak found, but not all of dso was seen"


def test_all_doubts_are_in_the_first_line() -> None:
    coverage = replace(
        unresolved("create", "conn", "conn_new"), missing=(Missing("dso"), Missing("map")),
        untraced=(Untraced(9, 1, "/bin/static", "it is static and has no symbols"),),
    )  # fmt: skip
    found = analyse(snapshot(coverage=coverage, losses=(Loss("the ring was full", 3, "--ring-size"),)), {})
    assert verdict(found).text == (
        "refleak: no leak found, but data were lost and dso, map were found nowhere and not all of conn was seen"
        " and 1 of 2 programs was not traced"
    )


def test_many_names_are_cut() -> None:
    coverage = Coverage(3, tuple(Unresolved("create", name, f"{name}_new", WHY) for name in "abcde"))
    text = verdict(analyse(snapshot(coverage=coverage), {})).text
    assert text == "refleak: no leak found, but not all of a, b, c and 2 more was seen"


@pytest.mark.parametrize(("operation", "type_", "function", "states"), [
    ("free", "free", "free", {"malloc": "outstanding", "pool": "leaked", "mmap": "leaked"}),
    ("realloc", "realloc", "realloc", {"malloc": "outstanding", "pool": "leaked", "mmap": "leaked"}),
    ("free", "pool", "pool_free", {"malloc": "leaked", "pool": "outstanding", "mmap": "leaked"}),
    ("unmap", "munmap", "munmap", {"malloc": "leaked", "pool": "leaked", "mmap": "outstanding"}),
    ("alloc", "calloc", "calloc", {"malloc": "leaked", "pool": "leaked", "mmap": "leaked"}),
])  # fmt: skip
def test_what_may_have_been_freed_unseen_is_no_leak(
    operation: str, type_: str, function: str, states: dict[str, str]
) -> None:
    code = Code()
    stack = code.stack(1, code.frame("f", "f.c:3"))
    sites = (
        SiteInfo(Operation.ALLOC, "malloc", "libc.so.6", "malloc"),
        SiteInfo(Operation.MAP, "mmap", "libc.so.6", "mmap"), SiteInfo(Operation.ALLOC, "pool_alloc", "srv", "pool"),
    )  # fmt: skip
    snap = snapshot(
        code, allocations=blocks({"address": 1, "size": 8, "stack": stack}, {"address": 9, "size": 8, "site": 2}),
        mapped=mapped({"start": 0x1000, "length": 0x1000, "stack": stack, "site": 1}), sites=sites,
        coverage=unresolved(operation, type_, function),
    )  # fmt: skip
    found = analyse(snap, code.symbols)
    assert {leak.type: leak.state for leak in found.leaks} == states
    said = f"what seems to be alive may have been freed unseen, so it is not called a leak (no probe on {function}"
    assert any(gap.startswith(said) for gap in found.coverage_gaps) is ("outstanding" in states.values())
