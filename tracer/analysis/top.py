"""Findings of a trace that goes on, as a sample of a live view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field, replace

from tracer.analysis.looks import look_of, scans_of_living
from tracer.analysis.verdict import failing_errors
from tracer.late_dataclasses import dataclass
from tracer.model.findings import INHERITED, Findings, Holder, Leak
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

    @property
    def classes(self) -> tuple[tuple[str, int], ...]:
        found: Counter[str] = Counter()
        for leak in self.leaks:
            if leak.reachability is not None:
                found[leak.reachability] += leak.count
        return tuple(found.most_common())

    @property
    def holders(self) -> Sequence[Holder] | None:
        """Return the holders of all parts, most first; None where nobody looked."""
        looked = [leak.holders for leak in self.leaks if leak.holders is not None]
        found = sorted((holder for holders in looked for holder in holders), key=lambda holder: -holder.count)
        return tuple(found) if looked else None


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
                first.stack, first.start, entry.classes, entry.holders,
            )
        )  # fmt: skip
    rows.sort(key=lambda row: (-(row.bytes or 0), -row.count, row.id))
    counted = sum(row.count for row in rows if row.kind == "reference")
    sample = TopSample(
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
    return _looked(sample, findings, before)


def _looked(sample: TopSample, findings: Findings, before: TopSample | None) -> TopSample:
    """Say what a look at the memory found. Where there was none this time, what the last one found stays."""
    last = None if before is None else before.look
    scans = scans_of_living(findings)
    reasons = [scan.reason for scan in scans if scan.reason is not None]
    if len(reasons) < len(scans):
        rows = _compared(sample.rows, before.rows) if before is not None and last is not None else sample.rows
        return replace(sample, rows=rows, look=look_of(findings, scans, last))
    not_looked = reasons[0] if reasons else "" if before is None else before.not_looked
    if before is None or last is None:
        return replace(sample, not_looked=not_looked)
    found = {row.id: row for row in before.rows}
    rows = tuple(_kept(row, found[row.id]) if row.id in found else row for row in sample.rows)
    return replace(sample, rows=rows, look=last, not_looked=not_looked)


def _compared(rows: Sequence[TopRow], before: Sequence[TopRow]) -> tuple[TopRow, ...]:
    """Add to each entry what the look before this one found of it: nothing, where it was not there. Of a sample that
    left entries out that is not known."""
    known = {row.id: row for row in before}
    absent = None if len(before) >= MOST_ROWS else ()
    found = []
    for row in rows:
        old = known.get(row.id)
        holders = absent if old is None else old.holders or ()
        found.append(replace(row, classes_before=old.classes if old else (), holders_before=holders))
    return tuple(found)


def _kept(row: TopRow, old: TopRow) -> TopRow:
    return replace(
        row, classes=old.classes, holders=old.holders, classes_before=old.classes_before,
        holders_before=old.holders_before,
    )  # fmt: skip
