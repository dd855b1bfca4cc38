"""Findings of a trace that goes on, as a sample of a live view."""

from __future__ import annotations

from dataclasses import dataclass, field

from tracer.analysis.evidence import INHERITED
from tracer.analysis.verdict import failing_errors
from tracer.model.findings import Findings, Leak
from tracer.model.top import TopRow, TopSample

MOST_ROWS = 500


@dataclass
class _Entry:
    leaks: list[Leak] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(leak.count for leak in self.leaks)

    @property
    def size(self) -> int:
        return sum(leak.bytes or 0 for leak in self.leaks)

    @property
    def word(self) -> str | None:
        """Return the word of the part that is most of it."""
        largest = max(self.leaks, key=lambda leak: (leak.bytes or 0, leak.count))
        return largest.trend.word if largest.trend else None


def top_sample(findings: Findings, before: TopSample | None) -> TopSample:
    """Sum the entries by id, with what they grew since the sample `before` and what they got since the last mark.

    Of more than MOST_ROWS entries those with most bytes, then objects, are kept; the sums are those of all.
    """
    entries: dict[str, _Entry] = {}
    for leak in findings.leaks:
        if leak.state != INHERITED:
            entries.setdefault(leak.id, _Entry()).leaks.append(leak)
    seconds = 0.0 if before is None else max(0, findings.duration_ns - before.time_ns) / 1e9
    earlier = {} if before is None else {row.id: row for row in before.rows}
    since = {row.id: row for row in findings.periods[-1].rows} if findings.periods else {}
    rows = []
    for id_, entry in entries.items():
        old, first, new = earlier.get(id_), entry.leaks[0], since.get(id_)
        count, size = entry.count, entry.size
        grown = (count - old.count, size - (old.bytes or 0)) if old else (count, size)
        rows.append(
            TopRow(
                id_, first.kind, first.type, count, None if first.bytes is None else size,
                grown[0] / seconds if seconds else 0.0, grown[1] / seconds if seconds else 0.0,
                new.outstanding if new else 0, (new.outstanding_bytes or 0) if new else 0, entry.word,
                first.stack, first.start,
            )
        )  # fmt: skip
    rows.sort(key=lambda row: (-(row.bytes or 0), -row.count, row.id))
    counted = sum(row.count for row in rows if row.kind == "reference")
    return TopSample(
        time_ns=findings.duration_ns,
        bytes=sum(row.bytes or 0 for row in rows),
        blocks=sum(row.count for row in rows) - counted,
        objects=counted,
        lost=sum(loss.count for loss in findings.losses),
        mark_ns=findings.periods[-1].from_ns if findings.periods else None,
        rows=tuple(rows[:MOST_ROWS]),
        types=findings.types,
        errors=failing_errors(findings),
    )
