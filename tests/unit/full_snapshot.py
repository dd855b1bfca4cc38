"""A snapshot in which no field is left at its default, and the comparison of two."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from hand_made import DSO, LOSSES, SECOND, events, objects, records, server

from tracer.model.frames import Frame
from tracer.model.generated import GeneratedFrame
from tracer.model.holders import HOLDER_RECORD, HolderKind, HolderName
from tracer.model.periods import Checkpoint
from tracer.model.reachability import KIND_ALLOCATION, REACH_RECORD, Reach, RootKind, Scan
from tracer.model.records import FREED_RECORD, StackStatus
from tracer.model.selection import Selection
from tracer.model.snapshot import Mapping, Snapshot, Stack
from tracer.model.statistics import (
    CHECKPOINT_TOTALS,
    CONDENSED,
    DEATH,
    FREED_HOLDER,
    HEAP_POINT,
    LIFE_BIN,
    LIFETIME,
    PAIR,
    STEP,
    BalancedStatistics,
)

WORDS = ("\udcff name", "ünï", "")


def full_snapshot() -> tuple[Snapshot, dict[int, tuple[Frame, ...]]]:
    """Return a snapshot and its symbols, with every kind of value that a field may have."""
    snapshot, code = server()
    first, *others = snapshot.processes
    processes = (replace(first, command=WORDS, forked_from=(1, 2), by_exec=True, made_bytes=1 << 63), *others)
    symbols = dict(code.symbols)
    inlined = Frame("f", "m", "/m", "aa", "f.c", 3, True, 7, None, "jit", "Lua", None)
    symbols[1 << 48 | 9] = (inlined, Frame(None, why_unknown="nothing covers it"))
    return replace(
        snapshot,
        mode="attached",
        target_ended=False,
        selection=Selection(16, 1 << 20, 4096),
        processes=processes,
        mappings=(Mapping(812, 1, 0x400000, 0x401000, 0, 1, True, 5, None), Mapping(812, 1, 1, 2, 3, 4, False, 6, 7)),
        stacks={**snapshot.stacks, (1 << 64) - 1: Stack(tuple(range(127)), StackStatus.TRUNCATED), 77: Stack(()),
                78: Stack((0xFFFF << 48, 1 << 48 | 9, 0xFFFF << 48 | 1))},
        script_frames=(
            Frame("f", "s.py", file="/s.py", line=3, kind="guest", language="Python"), Frame(None, kind="guest"),
        ),
        types={**snapshot.types, (1 << 64) - 1: "odd \0 name"},
        generated={
            0xDFFF << 48 | 9: GeneratedFrame("made \udcff", "m.js", 7, "JavaScript", 3),
            0xDFFF << 48 | 11: GeneratedFrame(None, why_unknown="replaced"),
        },
        inherited_objects=objects({"address": 0x9000, "drift": -3, "count": -1, "object": (1 << 64) - 1}),
        checkpoints=(Checkpoint(1, 7 * SECOND),),
        checkpoint_totals=records(CHECKPOINT_TOTALS, [{"stack": 1, "checkpoint": 1, "made": 4, "freed": 2, "site": 3}]),
        heap_course=records(
            HEAP_POINT, [{"time_ns": n, "live": 7, "live_bytes": 1 << 40, "made": n, "made_bytes": 7} for n in (1, 2)]
        ),
        life_bins=records(LIFE_BIN, [{"stack": 1, "bin": i, "count": 100 - i} for i in (3, 31)]),
        free_sites=records(FREED_RECORD, [{"made": 1, "freed": 7, "count": 38}]),
        history=np.concatenate([snapshot.history, events({"time_ns": 1, "count": -5, "serial": (1 << 32) - 1})]),
        condensed=records(CONDENSED, [{"address": 0x9000, "serial": 3, "count": 41, "exact": 2}]),
        freed_holders=records(FREED_HOLDER, [{"address": 0x9000, "serial": 3, "offset": 48, "count": 2}]),
        balanced=BalancedStatistics(
            records(PAIR, [{"type": DSO, "get_stack": 6, "put_stack": 7, "count": 11}]),
            records(DEATH, [{"type": DSO, "create_stack": 5, "last_stack": 7, "count": 3}]),
            records(LIFETIME, [{"type": DSO, "create_stack": 5, "count": 3, "sum_ns": 60, "max_ns": 1 << 63}]),
            records(STEP, [{"course": i, "count": 1 - i, "type": DSO, "operation": 1} for i in range(3)]),
            records(LIFE_BIN, [{"stack": 5, "type": DSO, "bin": 4, "count": 3}]),
        ),
        error_history=events({"time_ns": 4, "serial": 2, "flags": 1}),
        scans=(Scan(812, 1, None, 3, 1 << 40, 2), Scan(813, 1, "it was killed by SIGKILL")),
        reach=records(REACH_RECORD, [
            {"address": 0x9000, "pid": 812, "generation": 1, "kind": KIND_ALLOCATION, "reach": Reach.INDIRECT,
             "owner": (1 << 64) - 16, "root": 0x8008, "root_kind": RootKind.BLOCK},
        ]),
        holders=records(HOLDER_RECORD, [
            {"target": 0x9000, "pid": 812, "generation": 1, "kind": HolderKind.GLOBAL, "place": (1 << 48) + 9,
             "offset": -1, "count": 1 << 40, "name": 1},
        ]),
        holder_names=(HolderName("machines.host", "struct \udc80", None, "srv"),),
        losses=LOSSES,
        notes=("a note", "\udc80"),
    ), symbols


def differing_fields(one: Snapshot, other: Snapshot) -> list[str]:
    """Return the names of the fields that differ."""
    return [f.name for f in fields(Snapshot) if not _equal(getattr(one, f.name), getattr(other, f.name))]


def _equal(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and one.tolist() == other.tolist()
    if isinstance(one, BalancedStatistics) and isinstance(other, BalancedStatistics):
        return all(_equal(getattr(one, f.name), getattr(other, f.name)) for f in fields(BalancedStatistics))
    return one == other
