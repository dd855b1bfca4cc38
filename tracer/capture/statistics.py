"""Read what a session counted: walks and frames in the kernel, records and holds here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tracer.capture.losses import read_counters
from tracer.capture.session import Session
from tracer.model.operations import Operation
from tracer.model.records import COUNT_SLOTS, WALK_OUTCOMES, Count, WalkOutcome
from tracer.model.run_statistics import RingCounts, RunStatistics, WalkCounts


def read_statistics(session: Session) -> RunStatistics:
    """Return the counts so far; those of the kernel are 0 unless the session's constants ask for them."""
    counts = read_counters(session.kernel.maps.fds["COUNTS"], COUNT_SLOTS)
    return RunStatistics(
        walks=tuple(_walks(counts)),
        frames_walked=counts[Count.FRAMES],
        frames_joined=counts[Count.FRAMES_JOINED],
        forgotten=counts[Count.FORGOTTEN],
        interpreter_walks=counts[Count.INTERPRETER_WALKS],
        interpreter_frames=counts[Count.INTERPRETER_FRAMES],
        dumps=counts[Count.DUMPS],
        rings=tuple(RingCounts(name, ring.records, ring.taken_bytes) for name, ring in session.kernel.rings.items()),
        holds=session.holds.by_reason(),
    )


def _walks(counts: Sequence[int]) -> Iterator[WalkCounts]:
    table = np.array(counts[Count.WALKS :]).reshape(-1, WALK_OUTCOMES)
    for operation, row in zip(Operation, table, strict=False):  # what is of events alone has no walks
        if row.any():
            yield WalkCounts(
                operation, int(row[WalkOutcome.REMEMBERED]), int(row[WalkOutcome.JOINED]), int(row[WalkOutcome.MADE])
            )
