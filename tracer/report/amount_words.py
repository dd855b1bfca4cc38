"""Amounts of a set of entries, in words."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.model.findings import ErrorFinding, Leak
from tracer.model.selection import Sample
from tracer.report.amounts import counted, size
from tracer.report.selection_words import estimate

NOUNS = {"reference": "object", "allocation": "block", "mapping": "mapping"}


def times(error: ErrorFinding) -> str:
    """Return "1 time", "7 times" or "at least 86 times"."""
    return f"{'at least ' if error.is_least else ''}{counted(error.count, 'time')}"


def amount(leaks: Sequence[Leak]) -> str:
    """Return "5 objects of 2 types, 12.3 KiB in 41 blocks, 1.0 MiB in 1 mapping"; empty for no entry."""
    parts = []
    references = [leak for leak in leaks if leak.kind == "reference"]
    if references:
        types = len({leak.type for leak in references})
        parts.append(f"{counted(sum(leak.count for leak in references), 'object')} of {counted(types, 'type')}")
    for kind in ("allocation", "mapping"):
        chosen = [leak for leak in leaks if leak.kind == kind]
        samples = [leak.sample for leak in chosen if leak.sample is not None]
        if samples:
            total = sum(leak.bytes or 0 for leak in chosen), sum(leak.count for leak in chosen)
            parts.append(estimate(*total, NOUNS[kind], sum(samples, Sample())))
        elif chosen:
            blocks = counted(sum(leak.count for leak in chosen), NOUNS[kind])
            parts.append(f"{size(sum(leak.bytes or 0 for leak in chosen))} in {blocks}")
    return ", ".join(parts)
