"""The last block of a heap, which keeps it as large as it is."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.analysis.evidence import Evidence
from tracer.model.findings import HeapTop

_LEAST_FREE = 128 << 10
"""glibc gives nothing back of less at the top (M_TRIM_THRESHOLD, mallopt(3))."""


def heap_tops(evidence: Evidence) -> Iterator[HeapTop]:
    """Yield the last block of each heap that has much free below it."""
    for scan in evidence.snapshot.scans:
        resident = scan.resident
        if resident is not None and resident.free_below_top >= _LEAST_FREE:
            stack = evidence.stacks.get(resident.top_stack).frames
            age = max(0, evidence.snapshot.duration_ns - resident.top_made_ns)
            yield HeapTop(scan.pid, resident.top_size, age, resident.free_below_top, stack)
