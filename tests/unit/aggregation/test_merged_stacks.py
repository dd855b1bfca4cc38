"""Stacks that were walked to the same frames are one, in every table of a snapshot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from full_snapshot import full_snapshot

from tracer.aggregation.merged_stacks import merge_stacks
from tracer.model.events import ERROR_EVENT, EVENT
from tracer.model.operations import Operation
from tracer.model.records import FREED_RECORD, TOTALS_RECORD
from tracer.model.snapshot import Records, Snapshot, Stack
from tracer.model.statistics import CONDENSED, PAIR

A, B, OTHER = 11, 12, 13
STACKS = {A: Stack((1, 2)), OTHER: Stack((1, 3)), B: Stack((1, 2))}


def rows(dtype: np.dtype[np.void], *values: dict[str, int]) -> Records:
    made = np.zeros(len(values), dtype)
    for row, fields in zip(made, values, strict=True):
        for name, value in fields.items():
            row[name] = value
    return made


def test_totals_are_added() -> None:
    totals = rows(
        TOTALS_RECORD,
        {"stack": A, "made": 10, "freed": 4, "peak": 6, "risen": 9, "life_min_ns": 50, "life_max_ns": 70, "site": 3,
         "callers": 5},
        {"stack": B, "made": 5, "freed": 0, "peak": 5, "site": 3, "callers": 6},
        {"stack": OTHER, "made": 2, "site": 4},
    )
    merged = merge_stacks(Snapshot("launched", 0, stacks=STACKS, totals=totals))
    assert merged.stacks == {A: STACKS[A], OTHER: STACKS[OTHER]}
    names = ["stack", "made", "freed", "peak", "risen", "life_min_ns", "life_max_ns", "site"]
    assert merged.totals[names].tolist() == [(A, 15, 4, 11, 14, 50, 70, 3), (OTHER, 2, 0, 0, 2, 0, 0, 4)]


def test_where_blocks_were_freed() -> None:
    sites = rows(
        FREED_RECORD, {"made": A, "freed": B, "count": 2}, {"made": B, "freed": A, "count": 3},
        {"made": OTHER, "freed": B, "count": 5},
    )  # fmt: skip
    merged = merge_stacks(Snapshot("launched", 0, stacks=STACKS, free_sites=sites))
    assert merged.free_sites[["made", "freed", "count"]].tolist() == [(A, A, 5), (OTHER, A, 5)]


def test_pairs_and_events() -> None:
    pairs = rows(PAIR, {"get_stack": A, "put_stack": B, "count": 2}, {"get_stack": B, "put_stack": A, "count": 3})
    condensed = rows(CONDENSED, {"address": 8, "get_stack": B, "put_stack": OTHER, "count": 1})
    errors = rows(ERROR_EVENT, {"operation": Operation.ERROR, "stack": OTHER, "release": B, "birth": B})
    history = rows(EVENT, {"operation": Operation.GET, "stack": B, "object": B, "value": B})
    snapshot = Snapshot("launched", 0, stacks=STACKS, condensed=condensed, errors=errors, history=history)
    merged = merge_stacks(replace(snapshot, balanced=replace(snapshot.balanced, pairs=pairs)))
    assert merged.balanced.pairs[["get_stack", "put_stack", "count"]].tolist() == [(A, A, 5)]
    assert merged.condensed[["get_stack", "put_stack"]].tolist() == [(A, OTHER)]
    assert merged.errors[["stack", "release", "birth"]].tolist() == [(OTHER, A, A)]
    assert merged.history[["stack", "object", "value"]].tolist() == [(A, B, B)]  # an object and a holder, no stacks


def test_no_column_of_any_table_names_a_stack_that_is_gone() -> None:
    """Whatever table is added to a snapshot later."""
    snapshot, _ = full_snapshot()
    ids = list(snapshot.stacks)
    doubled = dict.fromkeys(ids, snapshot.stacks[ids[0]])
    merged = merge_stacks(replace(snapshot, stacks=doubled))
    gone = set(ids[1:])
    tables = [table for part in (merged, merged.balanced) for table in vars(part).values()]
    looked_at = 0
    for table in tables:
        for name in getattr(getattr(table, "dtype", None), "names", None) or ():
            if name.endswith("stack"):
                looked_at += 1
                assert not gone & set(table[name].tolist()), name
    assert looked_at > 8 and list(merged.stacks) == ids[:1]
