"""scan_trials.py PROGRAM SCANS: scan a program that keeps all that it has, again and again while it runs.

PROGRAM: a build of reachability/holds_everything.c. The scans are spread over runs with seeds of their own. Each line:
what was scanned so far, and the blocks by class, of which none may be LOST. Needs root, and tracer on the path.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import numpy as np

from tracer.aggregation.freed_counters import FREED_BLOCK
from tracer.capture.assembly import take_snapshot
from tracer.model.reachability import Reach
from tracer.model.snapshot import Snapshot
from tracer.pipeline.trace import Trace
from tracer.pipeline.trace_options import TraceOptions
from tracer.scanning.surroundings import ModuleTable

SCANS_OF_A_RUN = 100
REFUSED = 50
"""So many scans in a row that did not come about end all: their reason is what has to be looked into."""
NOTHING = np.zeros(0, FREED_BLOCK)


def scan(trace: Trace) -> tuple[Counter[str], list[str]]:
    """Stop the target, read its memory and the maps, let it go; return blocks by class, and why scans failed."""
    session, taken = trace._session, list[Snapshot]()
    session.endings.look_into(
        session.processes.spaces_alive, lambda: taken.append(take_snapshot(session, running=True, drain=False)),
        session.serve,
    )  # fmt: skip
    judged = session.endings.judged(taken[0], NOTHING, ModuleTable(taken[0]))
    counts = Counter[str]()
    for reach, count in zip(*np.unique(judged.reach["reach"], return_counts=True), strict=True):
        counts[Reach(int(reach)).name] += int(count)
    return counts, [done.reason for done in judged.scans if done.reason is not None]


def trial(program: str, seed: int, scans: int) -> tuple[Counter[str], int]:
    """Scan one run `scans` times, once a turn; return the sums over all of what `scan` returns."""
    sums, done, refused = Counter[str](), 0, 0
    trace = Trace.launched([program, str(seed), "on"], TraceOptions(mappings=False, duration_s=3600.0))
    try:
        trace.begin()

        def look() -> None:
            nonlocal done, refused
            counts, reasons = scan(trace)
            sums.update(counts)
            done, refused = (done, refused + 1) if reasons else (done + 1, 0)
            if refused >= REFUSED:
                raise SystemExit(f"{refused} scans in a row failed: {reasons[0]}")
            if done >= scans:
                trace.stop()

        trace.run(look)
    finally:
        trace.close()
        subprocess.run(["kill", "-KILL", str(trace.pids[0])], check=False)
    return sums, done


def main() -> None:
    program, wanted = sys.argv[1], int(sys.argv[2])
    sums, done, seed = Counter[str](), 0, 1
    while done < wanted:
        counts, worked = trial(program, seed, min(SCANS_OF_A_RUN, wanted - done))
        sums, done, seed = sums + counts, done + worked, seed + 1
        print(f"{done} scans of {seed - 1} runs: {dict(sums)}", flush=True)


if __name__ == "__main__":
    main()
