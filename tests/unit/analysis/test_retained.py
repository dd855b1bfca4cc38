"""Who retains what grows: exact sums on small graphs of entries."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tracer.analysis.retained import bytes_of, lost_bytes_of, retainers
from tracer.model.findings import LOST, REACHABLE, Growing, Holder, Leak, Retainer
from tracer.model.frames import Frame
from tracer.report.holder_words import growing_lines


def stack(name: str) -> tuple[Frame, ...]:
    return Frame(name, "srv", line=1), Frame("main", "srv", line=9)


def entry(name: str, *holders: Holder) -> Leak:
    return Leak(name, "allocation", "malloc", 1, "outstanding", 10, 1000, stack(name), True, "", holders=holders)


def block(name: str, called: str | None = None) -> Holder:
    return Holder(7, "block", called, stack=stack(name))


TABLE, OTHER = Holder(1, "global", "cache.table", module="srv"), Holder(1, "global", "others", module="srv")
ON_STACK = Holder(1, "stack", thread=3)


def retained(leaks: list[Leak], grown: dict[str, int]) -> dict[str, int]:
    found = retainers(leaks, grown, {})
    assert found is not None
    return {one.holder.name or str((one.holder.stack or stack(""))[0].function): one.bytes for one in found.retainers}


def test_a_list_is_retained_by_its_head_and_no_passing_word() -> None:
    leaks = [entry("node", block("node", "struct node.next"), TABLE, ON_STACK)]
    assert retained(leaks, {"node": 640}) == {"cache.table": 640}


def test_what_two_hold_is_retained_by_what_holds_both() -> None:
    leaks = [
        entry("leaf", block("left"), block("right")), entry("left", block("top")), entry("right", block("top")),
        entry("top", TABLE), entry("apart", OTHER),
    ]  # fmt: skip
    assert retained(leaks, {"leaf": 910, "apart": 90}) == {"cache.table": 910, "top": 910, "others": 90}
    found = retainers(leaks, {"leaf": 910, "apart": 90}, {})
    assert growing_lines(found)[0] == "91 % of the 1,000 bytes that grow are retained by cache.table [srv]"


def test_two_roots_retain_nothing_alone() -> None:
    assert retainers([entry("leaf", TABLE, OTHER)], {"leaf": 10}, {}) == Growing(10, ())


@pytest.mark.parametrize("leaks", [[], [entry("lost")]])
def test_what_nobody_holds_is_retained_by_nobody(leaks: list[Leak]) -> None:
    assert retainers(leaks, {"lost": 10}, {}) is None


def test_a_cycle_that_no_root_leads_to_is_retained_by_nobody() -> None:
    leaks = [entry("left", block("right")), entry("right", block("left")), entry("below", block("left"))]
    assert retainers(leaks, {"left": 10, "below": 20}, {}) == Growing(30, ())
    leaks = [entry("left", block("right"), TABLE), entry("right", block("left")), entry("below", block("right"))]
    assert retained(leaks, {"left": 10, "below": 20}) == {"cache.table": 30, "left": 20, "right": 20}


def test_what_is_lost_of_an_entry_is_retained_by_nobody() -> None:
    """A word on a stack held one block of an entry whose others were lost, and was said to retain them all."""
    lost = replace(entry("node"), reachability=LOST, bytes=600)
    leaks = [replace(entry("node", TABLE), reachability=REACHABLE), lost]
    assert lost_bytes_of(leaks) == {"node": 600}
    assert bytes_of(leaks) == {"node": 1600}
    assert retainers(leaks, {"node": 700}, {"node": 600}) == Growing(700, (Retainer(TABLE, 100),))
    assert retainers(leaks, {"node": 600}, {"node": 600}) is None
