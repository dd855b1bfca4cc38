"""Words of what is held, and by how many variables."""

from __future__ import annotations

import pytest

from tracer.model.findings import Holder, Leak
from tracer.report.class_words import leaked_amount, roots


def held(*holders: Holder, by: str = "a global") -> Leak:
    return Leak(
        "0" * 12, "allocation", "malloc", 1, "leaked", 1, 8, (), True, "complete", reachability="reachable",
        reachability_reason=f"held by {by}", holders=holders,
    )  # fmt: skip


def by_global(name: str | None, module: str = "prog", offset: int | None = None) -> Holder:
    return Holder(1, "global", name, module=module, offset=offset)


@pytest.mark.parametrize(
    ("leaks", "said"),
    [
        ([held(by_global("machines.host.kmaps")), held(by_global("machines.host.dsos"))], "1 global"),
        ([held(by_global("table[]"), by_global("table[].next"), by_global("tables"))], "2 globals"),
        ([held(by_global("list")), held(by_global("list", module="libother.so"))], "2 globals"),
        ([held(by_global(None, offset=16)), held(by_global(None, offset=24))], "2 globals"),
        ([held(by_global("list")), held(Holder(1, "block")), held(by="a stack")], "1 global, stacks"),
        ([held(by_global("list"), Holder(70, "other"))], "globals"),
        ([held(Holder(1, "block"))], "globals"),
        ([held(by="a mapping"), held(by="a mapping"), held(by="a register or a global")],
         "mappings, globals, registers"),
    ],
)  # fmt: skip
def test_variables_are_counted(leaks: list[Leak], said: str) -> None:
    assert roots(leaks) == said


def left(reachability: str | None) -> Leak:
    return Leak("0" * 12, "allocation", "malloc", 1, "leaked", 1, 8, (), True, "complete", reachability=reachability)


def test_what_was_not_looked_into_is_not_freed() -> None:
    """Behind what is possibly lost it looked as if it were of that."""
    said = leaked_amount([left("lost"), left("possible"), left(None), left(None)])
    assert said == "lost 8 bytes in 1 block, possibly lost 8 bytes in 1 block, not freed 16 bytes in 2 blocks"


def test_where_nothing_was_looked_into_it_needs_no_word() -> None:
    assert leaked_amount([left(None)]) == "8 bytes in 1 block"
