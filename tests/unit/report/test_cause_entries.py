"""Entries of one cause are listed as one, with where they were created and what they keep alive."""

from __future__ import annotations

from dataclasses import replace

from tracer.model.findings import Leak, UnpairedGet
from tracer.model.frames import Frame
from tracer.report.cause_entries import add_same_cause, cause_entries, memory_words
from tracer.report.page import Page

GET = UnpairedGet((Frame("get", "perf"),), 4, "strong", "because", 0.98)


def leak(name: str, count: int, cause: str | None = None, kept_alive_by: str | None = None) -> Leak:
    birth = (Frame(f"{name}_new", "perf", file=f"{name}.c", line=1),)
    return Leak(
        "0" * 12, "reference", name, 7, "leaked", count, None, birth, True, "complete",
        unpaired=(replace(GET, count=count),), cause=cause, kept_alive_by=kept_alive_by,
    )  # fmt: skip


LEAKS = [leak("map", 4, "one"), leak("map", 2, "one"), leak("dso", 3, "two"), leak("str", 50, None, "one")]


def test_a_number_for_each_cause() -> None:
    first, second = cause_entries(LEAKS)
    assert (first.lead, first.others, first.kept) == (LEAKS[0], (LEAKS[1],), (LEAKS[3],))
    assert (second.lead, second.others, second.kept) == (LEAKS[2], (), ())
    assert (first.summed.count, first.summed.unpaired[0].count) == (6, 6)
    assert second.summed == LEAKS[2]


def test_what_is_kept_alive_by_what_is_not_listed_stands_for_itself() -> None:
    assert [entry.lead for entry in cause_entries(LEAKS[2:])] == [LEAKS[2], LEAKS[3]]


def test_memory_stands_below_its_objects() -> None:
    memory = replace(LEAKS[0], id="1" * 12, kind="allocation", type="malloc", bytes=64, cause=None, memory_of="one")
    first, second = cause_entries([*LEAKS, memory])
    assert (first.memory, second.memory) == ((memory,), ())
    assert first.leaks == (LEAKS[0], LEAKS[1], LEAKS[3], memory)
    assert memory_words(first) == "their memory: 64 bytes in 4 blocks"
    assert memory_words(second) == ""
    (lead, *_) = cause_entries([*LEAKS, replace(memory, below_count=2, below_bytes=50)])
    assert memory_words(lead) == "their memory: 64 bytes in 4 blocks, and 2 blocks, 50 bytes below it"
    assert [entry.lead for entry in cause_entries([LEAKS[2], memory])] == [LEAKS[2], memory]


def test_memory_of_what_has_no_cause_stands_below_it_too() -> None:
    alone = replace(LEAKS[0], cause=None)
    memory = replace(alone, id="1" * 12, kind="allocation", type="malloc", bytes=64, count=1, memory_of=alone.id)
    (entry,) = cause_entries([alone, memory])
    assert (entry.lead, entry.memory) == (alone, (memory,))


def test_the_lines() -> None:
    page = Page(80)
    for entry in cause_entries(LEAKS):
        add_same_cause(page, entry)
    assert ["".join(span.text for span in line) for line in page.lines] == [
        "    the same cause: 2 more objects, created at",
        "      2  map_new map.c:1",
        "    kept alive by these, no cause of their own: 50 x str",
    ]
