"""Broken rules: kinds, merging, the three stacks, and what fails a run."""

from __future__ import annotations

import pytest
from hand_made import DSO, MAP, Code, broken_rules, snapshot

from tracer.analysis import analyse, failing_errors, has_findings
from tracer.model.events import ErrorKind
from tracer.model.operations import Operation
from tracer.model.snapshot import Coverage, SiteInfo, UncoveredInstances, Unresolved


def code_with_stacks() -> Code:
    code = Code()
    for id_, name in ((1, "offender"), (2, "birth"), (3, "release"), (4, "offender")):
        code.stack(id_, code.frame(name, f"{name}.c:{id_}"))
    return code


@pytest.mark.parametrize(
    ("kind", "word", "fails"),
    [
        (ErrorKind.OVER_PUT, "over-put", True),
        (ErrorKind.USE_AFTER_ZERO, "use-after-zero", True),
        (ErrorKind.DELETE_WHILE_REFERENCED, "delete-while-referenced", True),
        (ErrorKind.REINITIALISED, "reinitialised", False),
    ],
)
def test_an_error_has_three_stacks(kind: ErrorKind, word: str, fails: bool) -> None:
    code = code_with_stacks()
    seen = broken_rules(
        {"error": kind, "stack": 1, "birth": 2, "release": 3, "address": 0x77, "broken_type": DSO}
    )
    found = analyse(snapshot(code, errors=seen), code.symbols)
    (error,) = found.errors
    assert (error.kind, error.type, error.pid, error.count, error.address) == (word, "dso", 812, 1, 0x77)
    assert [frame.function for frame in error.stack] == ["offender"]
    assert [frame.function for frame in error.created_at or ()] == ["__refcnt__init", "birth"]
    assert [frame.function for frame in error.released_at or ()] == ["release"]
    assert has_findings(found) is fails
    assert len(failing_errors(found)) == fails


def test_equal_errors_are_merged_and_the_most_frequent_comes_first() -> None:
    code = code_with_stacks()
    once = {"error": ErrorKind.USE_AFTER_ZERO, "stack": 2, "address": 0x99, "broken_type": DSO}
    often = {"error": ErrorKind.OVER_PUT, "stack": 1, "broken_type": DSO}
    rows = [once, *({**often, "address": 0x70 + i} for i in range(3)), *({**often, "stack": 4} for _ in range(2))]
    first, second = analyse(snapshot(code, errors=broken_rules(*rows)), code.symbols).errors
    assert (first.kind, first.count, first.address) == ("over-put", 5, 0x70), (
        "another line of the same function is merged"
    )
    assert (second.kind, second.count, second.address) == ("use-after-zero", 1, 0x99)


def test_an_event_counts_for_all_that_it_stands_for() -> None:
    code = code_with_stacks()
    often = {"error": ErrorKind.OVER_PUT, "stack": 1, "broken_type": DSO}
    rows = {**often, "represented": 103}, {**often, "represented": 1}, {**often, "stack": 4, "represented": 7}
    seen = broken_rules(*rows)
    (error,) = analyse(snapshot(code, errors=seen), code.symbols).errors
    assert error.count == 111


def test_stacks_that_nobody_knows_are_none() -> None:
    code = code_with_stacks()
    seen = broken_rules({"error": ErrorKind.OVER_PUT, "stack": 1, "birth": 0, "release": 12345, "address": 1})
    (error,) = analyse(snapshot(code, errors=seen), code.symbols).errors
    assert (error.created_at, error.released_at, error.type) == (None, None, None)


@pytest.mark.parametrize(("callers", "kinds"), [
    (("main",), ["over-put"]), (("other",), ["double-free", "over-put"]),
])  # fmt: skip
def test_a_bad_free_inside_of_a_call_that_is_an_error_belongs_to_it(callers: tuple[str, ...], kinds: list[str]) -> None:
    code = Code()
    frames = {name: code.frame(name) for name in ("main", "other", "fclose", "close_file")}
    code.stack(1, frames["main"])
    code.stack(2, frames["close_file"], frames["fclose"], *(frames[name] for name in callers))
    seen = broken_rules(
        {"error": ErrorKind.OVER_PUT, "stack": 1, "broken_type": DSO, "address": 0x70},
        {"error": ErrorKind.DOUBLE_FREE, "stack": 2, "address": 0x90},
    )
    found = analyse(snapshot(code, errors=seen), code.symbols)
    assert sorted(error.kind for error in found.errors) == kinds


@pytest.mark.parametrize("counter", [False, True])
@pytest.mark.parametrize("copies", [0, 2])
@pytest.mark.parametrize(("unseen", "kind"), [
    ("put", ErrorKind.FREED_WHILE_COUNTED), ("put", ErrorKind.DELETE_WHILE_REFERENCED), ("get", ErrorKind.OVER_PUT),
    ("get", ErrorKind.USE_AFTER_ZERO), ("delete", ErrorKind.FREED_PAST_COUNTER),
])  # fmt: skip
def test_what_a_call_that_was_not_seen_may_explain_is_no_error(
    unseen: str, kind: ErrorKind, copies: int, counter: bool
) -> None:
    """A put whose first instruction the kernel does not probe left each object counted when it was freed."""
    code = code_with_stacks()
    whole = Unresolved(unseen, "dso", f"dso_{unseen}", "the kernel probes no instruction with such a prefix")
    inlined = UncoveredInstances(unseen, "dso", f"dso_{unseen}", copies, "loops were unrolled")
    coverage = Coverage(3, (), (inlined,)) if copies else Coverage(3, (whole,))
    sites = SiteInfo(0, "", "", None), SiteInfo(Operation.CREATE, "dso_new", "server", "dso", counter=counter)
    rows = ({"error": kind, "stack": 1, "broken_type": type_, "represented": 3} for type_ in (DSO, MAP))
    found = analyse(snapshot(code, errors=broken_rules(*rows), coverage=coverage, sites=sites), code.symbols)
    told = ["dso", "map"] if counter else ["map"]
    assert sorted(error.type or "" for error in found.errors) == told
    said = "3 errors of dso may be none, and are not shown: not all of its calls were seen"
    assert (said in found.notes) == (not counter)
