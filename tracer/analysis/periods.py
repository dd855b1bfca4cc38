"""Periods between checkpoints: what came and went in each, entry by entry."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from tracer.analysis.evidence import Evidence
from tracer.analysis.groups import Column, group_rows
from tracer.analysis.own_frame import own_frame
from tracer.late_dataclasses import dataclass
from tracer.model.periods import Period, PeriodRow
from tracer.model.snapshot import Records, Snapshot
from tracer.model.statistics import CHECKPOINT_TOTALS

_Made = tuple[int, int]
"""Stack, and type of a counted object or 0."""


@dataclass
class _Sum:
    """Of one entry in one period."""

    made: int = 0
    freed: int = 0
    outstanding: int = 0
    size: int = 0
    stack: int = 0
    site: int = 0


def periods(evidence: Evidence) -> tuple[Period, ...]:
    """Return the periods that the checkpoints make of the trace; none without a checkpoint."""
    snapshot = evidence.snapshot
    if not snapshot.checkpoints:
        return ()
    totals = np.concatenate([snapshot.checkpoint_totals, _at_end(snapshot)])
    sites = {(int(r["stack"]), 0): int(r["site"]) for r in totals if r["type"] == 0}
    times = [0, *(checkpoint.time_ns for checkpoint in snapshot.checkpoints), snapshot.duration_ns]
    born = _born(snapshot, np.array(times[1:-1]))
    before: dict[_Made, tuple[int, int]] = {}
    found = []
    for number in range(1, len(times)):
        now = {
            (int(r["stack"]), int(r["type"])): (int(r["made"]), int(r["freed"]))
            for r in totals[totals["checkpoint"] == number]
        }
        rows = _rows(evidence, sites, before, now, born.get(number, {}))
        found.append(Period(number, times[number - 1], times[number], rows))
        before = now
    return tuple(found)


def _at_end(snapshot: Snapshot) -> Records:
    """Return the totals at the end of the trace, as if a last checkpoint had been taken there."""
    last = len(snapshot.checkpoints) + 1
    blocks = snapshot.totals[snapshot.totals["made"] > 0]
    rows = np.zeros(len(blocks), CHECKPOINT_TOTALS)
    for name in ("stack", "made", "freed", "site"):
        rows[name] = blocks[name]
    ended = snapshot.balanced.lifetimes
    counted: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    columns = (ended[name].tolist() for name in ("type", "create_stack", "count"))
    for type_, stack, count in zip(*columns, strict=True):
        counted[type_, stack] = [count, count]
    for type_, stack in zip(snapshot.objects["type"].tolist(), snapshot.objects["stack"].tolist(), strict=True):
        counted[type_, stack][0] += 1
    objects = np.zeros(len(counted), CHECKPOINT_TOTALS)
    for row, ((type_, stack), (made, freed)) in zip(objects, counted.items(), strict=True):
        row["type"], row["stack"], row["made"], row["freed"] = type_, stack, made, freed
    both: Records = np.concatenate([rows, objects])
    both["checkpoint"] = last
    return both


def _born(snapshot: Snapshot, marks: Column) -> dict[int, dict[_Made, tuple[int, int]]]:
    """Return (count, bytes) of what is outstanding, by the period in which it was made."""
    found: defaultdict[int, dict[_Made, tuple[int, int]]] = defaultdict(dict)
    for rows, size, type_ in (
        (snapshot.allocations, "size", None), (snapshot.mapped, "length", None), (snapshot.objects, None, "type"),
    ):  # fmt: skip
        if len(rows) == 0:
            continue
        period = np.searchsorted(marks, rows["time_ns"].astype(np.int64), side="left") + 1
        types = rows[type_] if type_ else np.zeros(len(rows), np.uint64)
        groups = group_rows(period, rows["stack"], types)
        counts = np.bincount(groups.label)
        sizes = np.zeros(len(groups), np.uint64)
        if size:
            np.add.at(sizes, groups.label, rows[size].astype(np.uint64))
        for first, count, total in zip(groups.first.tolist(), counts.tolist(), sizes.tolist(), strict=True):
            found[int(period[first])][int(rows["stack"][first]), int(types[first])] = count, total
    return found


def _rows(
    evidence: Evidence, sites: dict[_Made, int], before: dict[_Made, tuple[int, int]],
    now: dict[_Made, tuple[int, int]], born: dict[_Made, tuple[int, int]],
) -> tuple[PeriodRow, ...]:  # fmt: skip
    sums: dict[tuple[str, str, str | None], _Sum] = {}
    for place in {**now, **born}:
        made, freed = (max(0, a - b) for a, b in zip(now.get(place, (0, 0)), before.get(place, (0, 0)), strict=True))
        outstanding, size = born.get(place, (0, 0))
        if not (made or freed or outstanding):
            continue
        made_at = evidence.makers.of_totals(*place, sites.get(place, len(evidence.snapshot.sites)))
        entry = sums.setdefault((evidence.ids.of(*made_at), *made_at[:2]), _Sum(stack=place[0], site=made_at[3]))
        entry.made, entry.freed = entry.made + made, entry.freed + freed
        entry.outstanding, entry.size = entry.outstanding + outstanding, entry.size + size
    return tuple(sorted(_described(evidence, sums), key=_rank))


def _described(evidence: Evidence, sums: dict[tuple[str, str, str | None], _Sum]) -> Iterator[PeriodRow]:
    for (id_, kind, type_), entry in sums.items():
        called = evidence.stacks.get(entry.stack).frames
        stack = evidence.makers.whole(called, entry.site)
        own = own_frame(stack, len(stack) - len(called))
        own = min(len(stack) - len(called), len(stack) - 1) if own is None and stack else own
        yield PeriodRow(
            id_, kind, type_, stack, own, entry.made, None if kind == "mapping" else entry.freed,
            entry.outstanding, None if kind == "reference" else entry.size,
        )  # fmt: skip


def _rank(row: PeriodRow) -> tuple[int, int, int, str]:
    return -(row.outstanding_bytes or 0), -row.outstanding, -row.made, row.id
