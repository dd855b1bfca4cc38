"""Measure how fast History folds balanced objects, and what memory it needs.

    PYTHONPATH=. python benchmarks/history.py [MILLIONS]

Prints the seconds per million events, and the peak memory after the first million and after the last:
their ratio says whether memory grows with what happened.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from tracer.aggregation.history import History
from tracer.model.events import EVENT, EventFlag
from tracer.model.operations import Operation
from tracer.model.snapshot import Records

BATCH = 65536
STACKS = 500
EVENTS_EACH = 8
ALIVE_EVERY = 1009


def batch(first_serial: int, random: np.random.Generator) -> Records:
    """Return the events of BATCH / EVENTS_EACH objects: a create, three gets, four puts, overlapping in time."""
    objects = BATCH // EVENTS_EACH
    events = np.zeros((objects, EVENTS_EACH), dtype=EVENT)
    serial = np.arange(first_serial, first_serial + objects)[:, None]
    operations = [Operation.CREATE, *[Operation.GET, Operation.PUT] * 3, Operation.PUT]
    events["operation"] = operations
    events["serial"], events["address"] = serial, 0x7F0000000000 + serial % 50021 * 64
    events["time_ns"] = serial * 8000 + np.cumsum(random.integers(1, 100_000, events.shape), axis=1)
    # A get is put back at one of four places; the create's own reference is the last.
    events["stack"] = random.integers(1, STACKS, events.shape)
    taken = events["stack"][:, [1, 3, 5, 0]]
    events["stack"][:, [2, 4, 6, 7]] = STACKS + taken * 4 + random.integers(0, 4, taken.shape)
    events["value"][:, 0] = serial[:, 0] % 7 + 1
    events["count"][:, 0] = 1
    events["pid"], events["tid"] = 100, 100 + serial % 4
    ends = serial[:, 0] % ALIVE_EVERY != 0
    events["flags"][ends, -1] = EventFlag.LAST
    flat = events.reshape(-1)[: BATCH - BATCH % EVENTS_EACH]
    return flat[np.argsort(flat["time_ns"], kind="stable")]


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(millions: int) -> None:
    random = np.random.default_rng(1)
    history = History()
    spent, seen, serial, first_peak = 0.0, 0, 1, 0.0
    while seen < millions * 1_000_000:
        events = batch(serial, random)
        serial += BATCH // EVENTS_EACH
        started = time.process_time()
        history.add(events)
        spent += time.process_time() - started
        seen += len(events)
        if seen >= 1_000_000 and not first_peak:
            first_peak = peak_mib()
    started = time.process_time()
    live = history.live_events()
    pairs = history.balanced.pairs
    spent += time.process_time() - started
    print(f"{seen} events, {spent:.2f} s of processor time, {spent / seen * 1e6:.3f} s per million")
    print(f"kept {len(live)} events, {len(pairs)} distinct pairs of {int(pairs['count'].sum())}")
    peak = peak_mib()
    print(f"peak {peak:.0f} MiB, after the first million {first_peak:.0f} MiB, ratio {peak / first_peak:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
