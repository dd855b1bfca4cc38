"""Measure how long 10 million events take to be folded and judged, and what memory that needs.

    PYTHONPATH=. python benchmarks/analysis.py [MILLIONS]

The events are those of benchmarks/history.py: one object in a thousand stays alive.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from benchmarks.history import ALIVE_EVERY, BATCH, EVENTS_EACH, STACKS, batch, peak_mib
from tracer.aggregation.history import History
from tracer.analysis.analysis import analyse
from tracer.model.frames import Frame
from tracer.model.operations import Operation
from tracer.model.records import OBJECT_RECORD
from tracer.model.snapshot import Process, Records, Snapshot, Stack


def objects_of(events: Records) -> Records:
    """Return the live objects whose whole history is `events`."""
    creates = events[events["operation"] == Operation.CREATE]
    objects = np.zeros(len(creates), dtype=OBJECT_RECORD)
    for name in ("pid", "generation", "group", "address", "serial", "time_ns", "stack", "tid"):
        objects[name] = creates[name]
    objects["type"], objects["initial"] = creates["value"], 1
    objects["gets"] = objects["puts"] = EVENTS_EACH // 2 - 1
    objects["count"] = 1
    return objects


def without_last_put(events: Records) -> Records:
    """Take the last event from the objects that stay alive: the put that they lack."""
    kept = np.ones(len(events), dtype=bool)
    for serial in np.unique(events["serial"][events["serial"] % ALIVE_EVERY == 0]).tolist():
        kept[np.flatnonzero(events["serial"] == serial)[-1]] = False
    return events[kept]


def stacks() -> tuple[dict[int, Stack], dict[int, tuple[Frame, ...]]]:
    """Return stacks of six frames and their symbols."""
    found: dict[int, Stack] = {}
    symbols: dict[int, tuple[Frame, ...]] = {}
    for number in range(STACKS * 6):
        frames = tuple(1 << 48 | 16 * (number // 7**depth * 8 + depth) for depth in range(6))
        found[number] = Stack(frames)
        for frame in frames:
            symbols[frame] = (Frame(f"f{frame & 0xFFFFF:x}", "app", file="a.c", line=frame & 0xFF, address=frame),)
    return found, symbols


def main(millions: int) -> None:
    random = np.random.default_rng(1)
    history = History()
    spent, serial = 0.0, 1
    while history.events_seen < millions * 1_000_000:
        events = without_last_put(batch(serial, random))
        serial += BATCH // EVENTS_EACH
        started = time.process_time()
        history.add(events)
        spent += time.process_time() - started
    started = time.process_time()
    live = history.live_events()
    found, symbols = stacks()
    end_ns = int(live["time_ns"].max())
    snapshot = Snapshot(
        "launched", end_ns, (Process(100, 0, None, ("app",), "app", 0, end_ns),),
        types={number: f"type{number}" for number in range(1, 8)}, stacks=found, objects=objects_of(live),
        history=live, balanced=history.balanced, type_totals=history.type_totals(),
    )  # fmt: skip
    folded = time.process_time()
    findings = analyse(snapshot, symbols)
    done = time.process_time()
    print(f"{history.events_seen:,} events folded in {spent + folded - started:.2f} s, judged in {done - folded:.2f} s")
    print(f"{len(findings.leaks):,} groups of {len(snapshot.objects):,} objects alive, peak {peak_mib():.0f} MiB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
