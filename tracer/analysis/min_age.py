"""Only what is old: what is young at the end may be in use, and on its way to be freed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tracer.analysis.groups import group_rows
from tracer.model.snapshot import Records, Snapshot


def older_than(snapshot: Snapshot, least_ns: int, end_ns: Callable[[int, int], int]) -> Snapshot:
    """Return the snapshot with those live objects, blocks and mappings only that are at least so old.

    `end_ns` gives the end of a process by pid and generation, ns since the trace began.
    """
    if least_ns <= 0:
        return snapshot

    def old(records: Records) -> Records:
        groups = group_rows(records["pid"], records["generation"])
        ends = [end_ns(int(records["pid"][row]), int(records["generation"][row])) for row in groups.first.tolist()]
        latest = np.maximum(np.array(ends, dtype=np.int64) - least_ns, -1)
        return records[records["time_ns"].astype(np.int64) <= latest[groups.label]]

    return replace(
        snapshot,
        allocations=old(snapshot.allocations),
        objects=old(snapshot.objects),
        mapped=old(snapshot.mapped),
        inherited=old(snapshot.inherited),
        inherited_objects=old(snapshot.inherited_objects),
    )
