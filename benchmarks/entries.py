"""What many distinct entries cost: no two objects, or blocks, have the same stack or the same history.

    PYTHONPATH=. python -m benchmarks.entries objects | blocks [FORMAT...]

`objects`: 50,000 live ones, each with some calls from 20,000 random stacks. `blocks`: one live block of each of 150,000
stacks. Judges them and writes the report in each FORMAT (json unless given).
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np

from benchmarks.history import peak_mib
from tracer.analysis.analysis import analyse
from tracer.analysis.options import AnalysisOptions
from tracer.model import records
from tracer.model.events import EVENT
from tracer.model.frames import Frame, Symbols
from tracer.model.operations import Operation
from tracer.model.snapshot import Process, Records, SiteInfo, Snapshot, Stack
from tracer.model.statistics import DEATH, PAIR, BalancedStatistics
from tracer.report.formats import FORMATS, ReportOptions, write_to_file

DEPTH, FUNCTIONS = 24, 5_000
OBJECTS, OBJECT_STACKS, CALLS_EACH, BLOCKS = 50_000, 20_000, 8, 150_000
_PID, _TYPE, _END_NS = 812, 7, 10**10


def random_stacks(count: int, random: np.random.Generator) -> tuple[dict[int, Stack], Symbols]:
    """Return `count` stacks of 24 random calls each, by ids from 1, and the symbols of their frames."""
    keys = [1 << 48 | 0x1000 + 32 * number for number in range(FUNCTIONS)]
    symbols = {
        key: (Frame(f"function_{n}", "srv", "/usr/bin/srv", "aa11", f"/src/file{n % 90}.c", n, address=key & 0xFFFFFF),)
        for n, key in enumerate(keys)
    }
    chosen = random.integers(0, FUNCTIONS, (count, DEPTH)).tolist()
    return {number: Stack(tuple(keys[n] for n in row)) for number, row in enumerate(chosen, 1)}, symbols


def objects_and_events(objects: int, stacks: int, random: np.random.Generator) -> tuple[Records, Records]:
    """Return live objects and their whole history: a create, and gets and puts that leave one get without a put."""
    made = np.zeros(objects, records.OBJECT_RECORD)
    made["address"], made["serial"] = np.arange(objects) * 128 + 0x7000_0000_0000, np.arange(objects) + 1
    made["object"], made["type"], made["initial"], made["pid"] = made["address"], _TYPE, 1, _PID
    made["stack"], made["time_ns"] = random.integers(1, stacks + 1, objects), np.arange(objects) * 1000
    made["gets"], made["puts"], made["count"] = CALLS_EACH // 2, CALLS_EACH // 2 - 1, 2
    owner = np.repeat(np.arange(objects), CALLS_EACH)
    turn = np.tile(np.arange(CALLS_EACH), objects)
    events = np.zeros(len(owner), EVENT)
    for name in ("address", "serial", "pid"):
        events[name] = made[name][owner]
    events["operation"] = np.where(turn == 0, Operation.CREATE, np.where(turn % 2, Operation.GET, Operation.PUT))
    events["stack"] = random.integers(1, stacks + 1, len(owner))
    events["stack"][turn == 0], events["value"][turn == 0], events["count"][turn == 0] = made["stack"], _TYPE, 1
    events["time_ns"], events["tid"] = made["time_ns"][owner] + turn * 50, _PID
    return made, events


def balanced(count: int, stacks: int, random: np.random.Generator) -> BalancedStatistics:
    """Return statistics of objects that ended, with random stacks: `count` pairs and as many deaths."""
    pairs, deaths = np.zeros(count, PAIR), np.zeros(count, DEATH)
    pairs["type"] = deaths["type"] = _TYPE
    pairs["count"] = deaths["count"] = 1
    for row, names in ((pairs, ("get_stack", "put_stack")), (deaths, ("create_stack", "last_stack"))):
        for name in names:
            row[name] = random.integers(1, stacks + 1, count)
    return BalancedStatistics(pairs, deaths)


def of_objects(objects: int = OBJECTS, stacks: int = OBJECT_STACKS) -> tuple[Snapshot, Symbols]:
    random = np.random.default_rng(20261121)
    found, symbols = random_stacks(stacks, random)
    made, events = objects_and_events(objects, stacks, random)
    return Snapshot(
        "launched", _END_NS, (_process(),), types={_TYPE: "conn"}, stacks=found, objects=made, history=events,
        balanced=balanced(stacks, stacks, random),
    ), symbols  # fmt: skip


def of_blocks(blocks: int = BLOCKS) -> tuple[Snapshot, Symbols]:
    random = np.random.default_rng(20261121)
    found, symbols = random_stacks(blocks, random)
    live = np.zeros(blocks, records.ALLOCATION_RECORD)
    live["address"], live["size"] = np.arange(blocks) * 48 + 0x5555_0000_0000, random.integers(1, 4096, blocks)
    live["time_ns"], live["stack"], live["pid"] = np.arange(blocks) * 1000, np.arange(blocks) + 1, _PID
    return Snapshot(
        "launched", _END_NS, (_process(),), sites=(SiteInfo(Operation.ALLOC, "malloc", "libc.so.6", "malloc"),),
        stacks=found, allocations=live,
    ), symbols  # fmt: skip


def _process() -> Process:
    return Process(_PID, 0, 1, ("./srv",), "/usr/bin/srv", 0, _END_NS, 0)


def main(kind: str, formats: list[str]) -> None:
    snapshot, symbols = of_objects() if kind == "objects" else of_blocks()
    print(f"made     peak {peak_mib():.0f} MiB")
    began = time.process_time()
    findings = analyse(snapshot, symbols, AnalysisOptions())
    print(f"analyse  {time.process_time() - began:.1f} s, {len(findings.leaks):,} entries, peak {peak_mib():.0f} MiB")
    for format_ in FORMATS:
        if format_.name in (formats or ["json"]):
            began = time.process_time()
            with open(os.devnull, "wb") as file:
                write_to_file(format_, findings, file, ReportOptions())
            print(f"{format_.name:<9}{time.process_time() - began:.1f} s, peak {peak_mib():.0f} MiB")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
