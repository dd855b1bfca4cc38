"""What forked children hold, against exact numbers and against processes that really copy."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.aggregation.inheritance import FREE_RECORD, GHOST_RECORD, inherited_allocations
from tracer.model.records import ALLOCATION_RECORD
from tracer.model.snapshot import Process, Records

Space = tuple[int, int]


def process(space: Space, parent: Space | None, started_ns: int, by_exec: bool = False) -> Process:
    return Process(
        space[0], space[1], parent[0] if parent else None, (), None, started_ns, by_exec=by_exec, forked_from=parent
    )


def blocks(*rows: tuple[int, int, int, int], dtype: np.dtype = ALLOCATION_RECORD) -> Records:
    """Return records of (pid, address, group, time) or, of GHOST_RECORD, (pid, address, group, time, freed)."""
    records = np.zeros(len(rows), dtype=dtype)
    for record, row in zip(records, rows, strict=True):
        record["pid"], record["address"], record["group"], record["time_ns"] = row[:4]
        record["size"], record["stack"] = row[3] + 1000, row[3] + 2000
        if len(row) > 4:
            record["freed_ns"] = row[4]
    return records


def ghosts(*rows: tuple[int, int, int, int, int]) -> Records:
    return blocks(*rows, dtype=GHOST_RECORD)


def frees(*rows: tuple[int, int, int, int]) -> Records:
    """Return FREE_RECORDs of (pid, address, group, time)."""
    records = np.zeros(len(rows), dtype=FREE_RECORD)
    for record, row in zip(records, rows, strict=True):
        record["pid"], record["address"], record["group"], record["time_ns"] = row
    return records


def found(records: Records) -> list[tuple[int, int, int]]:
    """Return (pid, address, time) in order."""
    return sorted((int(r["pid"]), int(r["address"]), int(r["time_ns"])) for r in records)


@dataclass
class Forked:
    """A process that really copies its memory when it forks."""

    space: Space
    parent: Space | None
    started_ns: int
    own: dict[tuple[int, int], int] = field(default_factory=dict)
    inherited: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    by_exec: bool = False


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["alloc", "alloc", "alloc", "free", "free", "fork", "exec"]),
        st.integers(0, 7),
        st.integers(1, 4),
        st.integers(0, 1),
    ),
    max_size=80,
)


@settings(max_examples=500, deadline=None)
@given(STEPS)
def test_agrees_with_processes_that_copy(steps) -> None:
    running = [Forked((10, 0), None, 0)]
    ended: list[Forked] = []
    dead: list[tuple[int, ...]] = []
    unknown: list[tuple[int, ...]] = []
    for time, (kind, which, address, group) in enumerate(steps, start=1):
        one = running[which % len(running)]
        key, pid = (address, group), one.space[0]
        if kind == "alloc" and key not in one.own and key not in one.inherited:
            one.own[key] = time
        elif kind == "free" and key in one.own:
            dead.append((pid, address, group, one.own.pop(key), time))
        elif kind == "free":
            one.inherited.pop(key, None)
            unknown.append((pid, address, group, time))
        elif kind == "fork":
            copies = one.inherited | {k: (made, pid) for k, made in one.own.items()}
            running.append(Forked((10 + len(running) + len(ended), 0), one.space, time, inherited=copies))
        elif kind == "exec" and len(running) > 1:
            one.by_exec = True
            running.remove(one)
            ended.append(one)
    everyone = running + ended
    live = blocks(*((p.space[0], *key, made) for p in everyone for key, made in p.own.items()))
    result = inherited_allocations(
        live, ghosts(*dead), [process(p.space, p.parent, p.started_ns, p.by_exec) for p in everyone], frees(*unknown)
    )
    assert sorted((int(r["pid"]), int(r["address"]), int(r["group"]), int(r["time_ns"])) for r in result) == sorted(
        (p.space[0], *key, made) for p in running for key, (made, _) in p.inherited.items()
    )
    assert np.array_equal(result["size"], result["time_ns"] + 1000)
    assert np.array_equal(result["stack"], result["time_ns"] + 2000)


def test_only_what_was_alive_at_the_fork_is_copied() -> None:
    live = blocks((10, 0x100, 0, 4), (10, 0x200, 0, 5), (10, 0x300, 0, 6))
    gone = ghosts((10, 0x400, 0, 1, 4), (10, 0x500, 0, 1, 5), (10, 0x600, 0, 1, 6))
    result = inherited_allocations(live, gone, [process((11, 0), (10, 0), 5)], frees())
    assert found(result) == [(11, 0x100, 4), (11, 0x500, 1), (11, 0x600, 1)]
    assert result.dtype == ALLOCATION_RECORD


def test_an_address_of_another_group_or_process_is_another_block() -> None:
    live = blocks((10, 0x100, 0, 1), (10, 0x100, 3, 1), (10, 0x200, 0, 1))
    unknown = frees((11, 0x100, 3, 9), (10, 0x200, 0, 9), (11, 0x150, 0, 9))
    result = inherited_allocations(live, ghosts(), [process((11, 0), (10, 0), 5)], unknown)
    assert [(int(r["address"]), int(r["group"])) for r in result] == [(0x100, 0), (0x200, 0)]


def test_a_chain_passes_on_what_each_held_at_its_fork() -> None:
    live = blocks((10, 0x100, 0, 1), (10, 0x200, 0, 2), (11, 0x300, 0, 12), (11, 0x400, 0, 22))
    chain = [process((12, 0), (11, 0), 20), process((13, 0), (12, 0), 30), process((11, 0), (10, 0), 10)]
    unknown = frees((11, 0x100, 0, 15), (11, 0x200, 0, 25), (12, 0x300, 0, 35))
    result = inherited_allocations(live, ghosts(), chain, unknown)
    assert found(result) == [(12, 0x200, 2), (13, 0x200, 2), (13, 0x300, 12)]


def test_exec_drops_the_copies_but_not_those_of_children_forked_before() -> None:
    live = blocks((10, 0x100, 0, 1))
    family = [process((11, 0), (10, 0), 5, by_exec=True), process((11, 1), None, 9), process((12, 0), (11, 0), 7)]
    assert found(inherited_allocations(live, ghosts(), family, frees())) == [(12, 0x100, 1)]


def test_nobody_forked_and_nothing_alive() -> None:
    assert len(inherited_allocations(blocks((10, 1, 0, 1)), ghosts(), [process((10, 0), None, 0)], frees())) == 0
    assert len(inherited_allocations(blocks(), ghosts(), [process((11, 0), (10, 0), 5)], frees((11, 1, 0, 6)))) == 0
