"""What many address spaces have lost is the same by one processor and by several."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from hand_made import blocks, process, snapshot

from tracer.aggregation.freed_counters import FREED_BLOCK
from tracer.model.reachability import Reach, Scan
from tracer.model.snapshot import Snapshot
from tracer.reachability.memory import REGION, WORD, Memory, RegionKind
from tracer.scanning.judging import judged
from tracer.scanning.space_read import SpaceRead
from tracer.scanning.surroundings import ModuleTable

COUNT, BASE, ROOTS = 50, 0x5000_0000, 0x7000_0000
REGIONS = np.array([(BASE, BASE + 0x100000, RegionKind.ALLOCATOR), (ROOTS, ROOTS + 64, RegionKind.GLOBAL)], REGION)


def spaces() -> tuple[Snapshot, list[SpaceRead | None]]:
    """Processes of three blocks each, of which the first is pointed at in every second process, and the second by the
    first in every third; every seventh has nothing, of every eleventh nothing was read."""
    pids = [100 + n for n in range(COUNT)]
    rows, reads = [], list[SpaceRead | None]()
    for n, pid in enumerate(pids):
        starts = [BASE + 0x1000 * n + 0x100 * k for k in range(3)]
        if n % 7:
            rows += [{"address": start, "size": 40 + n, "pid": pid} for start in starts]
        pointers = [(ROOTS, starts[0])] * (not n % 2) + [(starts[0] + 8, starts[1])] * (not n % 3)
        memory = Memory(regions=REGIONS, words=np.sort(np.array(pointers, WORD), order="at"), time_ns=1 << 40)
        read = SpaceRead(memory, Scan(pid, 0, bytes_read=n))
        reads.append(read if n % 11 else SpaceRead(None, Scan(pid, 0, reason="it is too large")))
    processes = tuple(process(pid, generation=0, ended_ns=9) for pid in pids)
    whole = snapshot(processes=processes, binaries=(), allocations=blocks(*rows, generation=0))
    return replace(whole, mode="launched"), reads


def judge(monkeypatch: pytest.MonkeyPatch, processors: int) -> Snapshot:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(processors)))
    whole, reads = spaces()
    return judged(whole, reads, np.zeros(0, FREED_BLOCK), ModuleTable(whole), None)


def test_many_are_judged_as_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    one, several = judge(monkeypatch, 1), judge(monkeypatch, 3)
    assert one.scans == several.scans and len(one.scans) == len([n for n in range(COUNT) if n % 7])
    assert [scan.reason for scan in one.scans] == [
        None if n % 11 else "it is too large" for n in range(COUNT) if n % 7
    ]  # fmt: skip
    assert np.array_equal(one.reach, several.reach) and np.array_equal(one.holders, several.holders)
    found = {int(row["address"]): Reach(int(row["reach"])) for row in several.reach}
    for n in range(COUNT):
        if n % 7 and n % 11:
            first = Reach.LOST if n % 2 else Reach.REACHABLE
            second = Reach.LOST if n % 3 else Reach.INDIRECT if n % 2 else Reach.REACHABLE
            start = BASE + 0x1000 * n
            assert [found[start + at] for at in (0, 0x100, 0x200)] == [first, second, Reach.LOST]
    assert len(found) == 3 * len([n for n in range(COUNT) if n % 7 and n % 11]) and len(several.holders) > 0
