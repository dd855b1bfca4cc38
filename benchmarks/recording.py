"""How large a recording gets, and what reporting it takes: 1,000,000 live blocks and 10,000,000 events.

Run: python -m benchmarks.recording [FOLDER]
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tracer.model import records
from tracer.model.events import EVENT
from tracer.model.frames import Frame, Symbols
from tracer.model.operations import Operation
from tracer.model.snapshot import Binary, Process, Records, SiteInfo, Snapshot, Stack
from tracer.recording.recording import Info
from tracer.recording.writer import RecordingWriter

BLOCKS, EVENTS, STACKS, DEPTH, FUNCTIONS = 1_000_000, 10_000_000, 2_000, 24, 5_000
OBJECTS, EVENTS_EACH, PATTERNS = 10_000, 100, 50
NS_PER_EVENT = 1_000
RANDOM = np.random.default_rng(20261121)


def stacks() -> tuple[dict[int, Stack], Symbols]:
    keys = [1 << 48 | 0x1000 + 32 * i for i in range(FUNCTIONS)]
    symbols = {
        key: (Frame(f"function_{i}", "srv", "/usr/bin/srv", "aa11", f"/src/file{i % 90}.c", i, address=key & 0xFFFFFF),)
        for i, key in enumerate(keys)
    }
    chosen = RANDOM.integers(0, FUNCTIONS, (STACKS, DEPTH))
    ids = RANDOM.integers(1, 1 << 63, STACKS, np.uint64).tolist()
    return {id_: Stack(tuple(keys[i] for i in row)) for id_, row in zip(ids, chosen.tolist(), strict=True)}, symbols


def live_blocks(ids: npt.NDArray[np.uint64]) -> Records:
    live = np.zeros(BLOCKS, records.ALLOCATION_RECORD)
    live["address"] = RANDOM.permutation(np.arange(BLOCKS, dtype=np.uint64) * 48 + np.uint64(0x5555_0000_0000))
    live["size"] = RANDOM.choice([16, 24, 40, 64, 100, 4096], BLOCKS)
    live["time_ns"] = RANDOM.integers(0, EVENTS * NS_PER_EVENT, BLOCKS)
    live["stack"], live["tid"], live["pid"] = RANDOM.choice(ids, BLOCKS), 812, 812
    return live


def history(ids: npt.NDArray[np.uint64]) -> tuple[Records, Records]:
    """Return the events of the objects that live: all others of the trace's were folded when their objects ended."""
    objects = np.zeros(OBJECTS, records.OBJECT_RECORD)
    objects["address"], objects["serial"] = np.arange(OBJECTS) * 128 + 0x7000_0000_0000, np.arange(OBJECTS) + 1
    objects["type"], objects["initial"], objects["count"], objects["pid"] = 7, 1, 1, 812
    objects["stack"], objects["time_ns"] = ids[np.arange(OBJECTS) % PATTERNS], np.arange(OBJECTS) * NS_PER_EVENT
    rows = OBJECTS * EVENTS_EACH
    events = np.zeros(rows, EVENT)
    owner, turn = np.arange(rows) % OBJECTS, np.arange(rows) // OBJECTS
    for name in ("address", "serial", "pid"):
        events[name] = objects[name][owner]
    events["operation"] = np.where(turn % 2, Operation.PUT, Operation.GET)
    events["stack"] = ids[(owner % PATTERNS * 7 + turn % 10) % len(ids)]
    events["time_ns"] = np.cumsum(RANDOM.integers(1, 2 * NS_PER_EVENT, rows))
    events["tid"], events["count"], events["count_read"] = RANDOM.integers(812, 820, rows), 1 + turn % 2, 2 - turn % 2
    return events, objects


def synthetic() -> tuple[Snapshot, Symbols]:
    all_stacks, symbols = stacks()
    ids = np.array(list(all_stacks), np.uint64)
    events, objects = history(ids)
    totals = np.zeros(STACKS, records.TOTALS_RECORD)
    totals["stack"], totals["made"] = ids, 60
    process = Process(812, 0, 1, ("./srv",), "/usr/bin/srv", 0, EVENTS * NS_PER_EVENT, 0, made=BLOCKS)
    return Snapshot(
        "launched", EVENTS * NS_PER_EVENT, (process,), (Binary(1, "/usr/bin/srv", "aa11"),),
        sites=(SiteInfo(Operation.ALLOC, "malloc", "libc.so.6", "malloc"),), types={7: "dso"},
        stacks=all_stacks, allocations=live_blocks(ids), objects=objects, totals=totals, history=events,
        events_seen=EVENTS,
    ), symbols  # fmt: skip


def main(folder: Path) -> None:
    snapshot, symbols = synthetic()
    path = folder / "synthetic.refleak"
    began = time.monotonic()
    writer = RecordingWriter(path, Info("benchmark"), force=True)
    writer.write_snapshot(snapshot, symbols)
    writer.close()
    size = path.stat().st_size
    print(f"write    {time.monotonic() - began:.1f} s, {size:,} bytes, {size / EVENTS:.2f} per event seen")
    only = folder / "events.refleak"
    writer = RecordingWriter(only, Info("benchmark"), force=True)
    writer.write_snapshot(Snapshot("launched", 0, history=snapshot.history), None)
    writer.close()
    kept = len(snapshot.history)
    print(f"events   {kept:,} kept, {only.stat().st_size / kept:.1f} bytes each on disk")
    for format_ in ("text", "json"):
        began = time.monotonic()
        command = [sys.executable, "-m", "tracer.cli.main", "report", str(path), "--format", format_, "-o", os.devnull]
        child = subprocess.Popen(command)
        _, status, usage = os.wait4(child.pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        print(f"report   {format_}: {time.monotonic() - began:.1f} s, {usage.ru_maxrss / 1024:.0f} MiB at most")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "/tmp"))
