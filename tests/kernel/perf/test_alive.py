"""Unmodified perf with a discovered spec is seen as the build with stubs is: call by call, and what stays alive."""

from __future__ import annotations

from collections import Counter

import pytest
from traced_perf import Json, TracedPerf, built
from traced_report import callers

TYPES = ("dso", "map", "thread")
CREATED_IN = {"dso": "dso__new_id", "map": "map__", "thread": "thread__new"}


def totals(report: Json) -> dict[str, tuple[int, ...]]:
    """Return (created, gets, puts, destroyed, outstanding) by type; the stubs' names are `&dso->refcnt`."""
    names = ("created", "gets", "puts", "destroyed", "outstanding")
    rows = {row["type"].removeprefix("&").partition("->")[0]: row for row in report["totals"]["references"]}
    return {type_: tuple(rows[type_][name] for name in names) for type_ in TYPES if type_ in rows}


def alive(report: Json) -> Counter[tuple[str, tuple[str, ...], int]]:
    """Count the objects by type, by the functions of the program's own that made them, and by their references."""
    found: Counter[tuple[str, tuple[str, ...], int]] = Counter()
    for leak in report["leaks"]:
        type_ = leak["type"].removeprefix("&").partition("->")[0]
        if type_ in TYPES:
            makers = [frame["function"] for frame in callers(leak)]
            outer = tuple(name for name in makers if not name.startswith(CREATED_IN[type_]))
            found[type_, outer, leak["instances"][0]["references"]] += leak["count"]
    return found


@pytest.mark.parametrize("command", ["probe vfs_read", "record", "report", "script"])
def test_the_same_objects_as_with_stubs(command: str, perf: TracedPerf) -> None:
    stubs, unmodified = built("perf"), built("perf-unmodified")
    with_stubs = perf.trace(stubs, command)
    discovered = perf.trace(unmodified, command, "--spec", str(perf.spec))
    uncovered = {copies["type"] for copies in discovered["probes"]["inlined_not_covered"]}
    assert not uncovered.intersection(TYPES)
    seen, expected = totals(discovered), totals(with_stubs)
    if command != "record":  # no two recordings meet the same processes: there, only what stays alive is the same
        assert seen == expected
    assert expected["dso"][0] > 0
    assert alive(discovered) == alive(with_stubs)
