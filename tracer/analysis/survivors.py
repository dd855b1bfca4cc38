"""Survivors: outstanding memory by the time when it was made."""

from __future__ import annotations

import numpy as np

from tracer.analysis.estimates import weights
from tracer.analysis.groups import Column
from tracer.model.distinct_values import distinct
from tracer.model.heap_course import Survivors
from tracer.model.records import MappedFlag
from tracer.model.snapshot import Snapshot

_MOST = 100


def survivors(snapshot: Snapshot) -> tuple[Survivors, ...]:
    """Sum the live allocations and mappings by time of birth, suppressed ones too; inherited copies are not counted."""
    mapped = snapshot.mapped[snapshot.mapped["flags"] & np.uint32(MappedFlag.INHERITED) == 0]
    times = np.concatenate([snapshot.allocations["time_ns"], mapped["time_ns"]]).astype(np.int64)
    sizes = np.concatenate([snapshot.allocations["size"], mapped["length"]]).astype(np.uint64)
    lengths = np.concatenate([np.zeros(len(snapshot.allocations)), mapped["length"]]).astype(np.uint64)
    if len(times) == 0:
        return ()
    order = np.argsort(times, kind="stable")
    times, counts = times[order], np.arange(len(times) + 1)
    sums, in_mappings = _sums(sizes[order]), _sums(lengths[order])
    if snapshot.selection.is_sampled:
        weight = np.ones(len(times))
        weight[: len(snapshot.allocations)] = weights(sizes[: len(snapshot.allocations)], snapshot.selection)
        counts, sums = (np.rint(_sums(column[order])).astype(np.int64) for column in (weight, weight * sizes))
    end = max(snapshot.duration_ns, int(times[-1]))
    marks = distinct(np.linspace(0, end, _MOST).astype(np.int64))
    born = np.searchsorted(times, marks, side="right")
    return tuple(
        Survivors(*row)
        for row in zip(
            marks.tolist(), counts[born].tolist(), sums[born].tolist(), in_mappings[born].tolist(), strict=True
        )
    )


def _sums(column: Column) -> Column:
    """Return the sums of the first 0, 1, 2, ... values."""
    return np.concatenate([np.zeros(1, column.dtype), np.cumsum(column, dtype=column.dtype)])
