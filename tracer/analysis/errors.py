"""Broken rules of counting, merged by what and where."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tracer.analysis.bad_frees import KINDS, BadFrees
from tracer.analysis.evidence import Evidence
from tracer.analysis.extra_put import ExtraPuts
from tracer.analysis.groups import group_rows
from tracer.model.findings import ErrorFinding
from tracer.model.records import ErrorKind

REINITIALISED = "reinitialised"
_KINDS: Mapping[int, str] = {
    ErrorKind.OVER_PUT: "over-put",
    ErrorKind.USE_AFTER_ZERO: "use-after-zero",
    ErrorKind.DELETE_WHILE_REFERENCED: "delete-while-referenced",
    ErrorKind.REINITIALISED: REINITIALISED,
    **KINDS,
}


def error_findings(evidence: Evidence, frees: BadFrees) -> tuple[ErrorFinding, ...]:
    """Merge the ERROR events by kind, type, process and the functions of their three stacks; most frequent first.

    Only some of those alike are kept: `reserved` of each says for how many it stands.
    """
    events = frees.broken
    names = ("flags", "extra", "pid", "generation", "stack", "value", "object")
    groups = group_rows(*(events[name] for name in names))
    stand_for = np.maximum(events["reserved"], 1)
    counts = np.bincount(groups.label, stand_for, len(groups)).astype(np.int64).tolist()
    merged: dict[object, ErrorFinding] = {}
    extra = ExtraPuts(evidence, events)
    for row, count in sorted(zip(groups.first.tolist(), counts, strict=True)):
        event = events[row]
        stacks = [evidence.book.get(int(event[name])) for name in ("stack", "value", "object")]
        key = (*(int(event[name]) for name in names[:4]), *(stack.keys for stack in stacks))
        before = merged.get(key)
        put = extra.of(row) if before is None or before.probably is None else None
        merged[key] = ErrorFinding(
            kind=_KINDS.get(int(event["flags"]), f"error {int(event['flags'])}"),
            type=evidence.type_name(int(event["extra"])) if event["extra"] else frees.type(event),
            pid=int(event["pid"]),
            count=count + (before.count if before else 0),
            address=before.address if before else int(event["address"]),
            stack=before.stack if before else stacks[0].frames,
            created_at=before.created_at if before else stacks[1].frames or None,
            released_at=before.released_at if before else stacks[2].frames or None,
            probably=evidence.book.frames(put.stack) if put else before.probably if before else None,
            reason=put.reason if put else before.reason if before else frees.reason(event),
        )
    return tuple(sorted(merged.values(), key=_rank))


def _rank(error: ErrorFinding) -> tuple[bool, int, str, str, int, int]:
    return (error.kind == REINITIALISED, -error.count, error.kind, error.type or "", error.pid, error.address)
