"""Sums over all processes: allocations and the table of types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from tracer.analysis.estimates import estimated
from tracer.analysis.evidence import Evidence
from tracer.model.findings import AllocationTotals, TypeRow
from tracer.model.operations import Operation
from tracer.model.snapshot import Snapshot


def allocation_totals(snapshot: Snapshot) -> AllocationTotals:
    """Sum what was made and freed; what is inherited from a parent is not counted again."""
    sizes = np.ascontiguousarray(snapshot.allocations["size"])
    whole = estimated(sizes, np.zeros(min(1, len(sizes)), dtype=np.int64), snapshot.selection)
    return AllocationTotals(
        made=sum(process.made for process in snapshot.processes),
        freed=sum(process.freed for process in snapshot.processes),
        outstanding=int(whole.counts.sum()),
        outstanding_bytes=int(whole.bytes.sum()),
        sample=whole.sample(slice(None)),
    )


def type_rows(evidence: Evidence) -> tuple[TypeRow, ...]:
    """Return one row per type name, those with most outstanding first, then by name."""
    created, gets, puts, destroyed = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for total in evidence.snapshot.type_totals:
        if not (total.created or total.gets or total.puts or total.destroyed):
            continue  # only of what was not seen to be made: its type is not known
        name = evidence.type_name(total.type)
        created[name] += total.created
        gets[name] += total.gets
        puts[name] += total.puts
        destroyed[name] += total.destroyed
    alive = Counter[str]()
    hashes, counts = np.unique(evidence.snapshot.objects["type"], return_counts=True)
    for type_hash, count in zip(hashes.tolist(), counts.tolist(), strict=True):
        alive[evidence.type_name(type_hash)] += count
    rows = [TypeRow(n, created[n], gets[n], puts[n], destroyed[n], alive[n]) for n in {*created, *alive}]
    return tuple(sorted(rows, key=lambda row: (-row.outstanding, row.type)))


def notes(snapshot: Snapshot, unjudged_frees: int = 0) -> tuple[str, ...]:
    """Return what the trace says of itself, and what it met but cannot judge, `unjudged_frees` among it.

    What a forked child frees and did not make is its copy of a block of its parent's: nothing to speak of.
    """
    unknown = {
        "free": unjudged_frees + sum(p.unknown_frees for p in snapshot.processes if p.forked_from is None),
        "get": sum(total.unknown_gets for total in snapshot.type_totals),
        "put": sum(total.unknown_puts for total in snapshot.type_totals),
    }
    age = "older than the trace" if snapshot.mode == "attached" else "not seen to be made"
    said = [f"{count:,} {what}{'s' * (count != 1)} of something {age}" for what, count in unknown.items() if count]
    return (*snapshot.notes, *said)


def type_names(snapshot: Snapshot, rows: Iterable[TypeRow]) -> tuple[str, ...]:
    """Return the counted types that some probe is for, and those that occurred."""
    probed = {site.type for site in snapshot.sites if Operation.CREATE <= site.operation <= Operation.DELETE}
    return tuple(sorted({name for name in probed if name} | {row.type for row in rows}))
