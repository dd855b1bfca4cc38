"""Two findings held against each other, entry by entry."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.analysis.evidence import INHERITED
from tracer.analysis.identity import keys_of, stable_id
from tracer.analysis.own_frame import own_frame
from tracer.analysis.verdict import failing_errors
from tracer.model.comparison import Amount, Change, Comparison
from tracer.model.findings import ErrorFinding, Findings, FrameList
from tracer.model.selection import Sample

_Row = tuple[str, str, str | None, FrameList, int, int | None, Sample | None]
_WORDS = ("new", "grown", "shrunk", "gone", "same")


def compare(before: Findings, after: Findings) -> Comparison:
    """Match entries by stable id, over all processes; what is suppressed or inherited takes no part."""
    old, new = _entries(before), _entries(after)
    changes = []
    for id_ in {**old, **new}:
        entry = new.get(id_) or old[id_]
        then, now = (side[id_].amount if id_ in side else None for side in (old, new))
        blind = 0
        if entry.kind == "allocation" and (then is None or now is None):
            blind = (before if then is None else after).selection.sample_bytes
        changes.append(Change(id_, entry.kind, entry.type, then, now, entry.stack, own_frame(entry.stack), blind))
    return Comparison(tuple(sorted(changes, key=_rank)))


def error_id(error: ErrorFinding) -> str:
    """Return a name of a broken rule that stays the same over runs and rebuilds."""
    return stable_id("error", _error_type(error), keys_of(error.stack))


def _error_type(error: ErrorFinding) -> str:
    return f"{error.kind} of {error.type}" if error.type else error.kind


class _Entry:
    def __init__(self, kind: str, type_: str | None, stack: FrameList) -> None:
        self.kind, self.type, self.stack = kind, type_, stack
        self.amount = Amount()
        self._sample = Sample()

    def add(self, count: int, size: int | None, sample: Sample | None) -> None:
        total = self.amount.bytes if size is None else size + (self.amount.bytes or 0)
        self._sample += sample or Sample()
        self.amount = Amount(
            self.amount.count + count, total, self._sample.count_error, self._sample.bytes_error
        )


def _entries(findings: Findings) -> dict[str, _Entry]:
    entries: dict[str, _Entry] = {}
    for id_, kind, type_, stack, count, size, sample in _rows(findings):
        entries.setdefault(id_, _Entry(kind, type_, stack)).add(count, size, sample)
    return entries


def _rows(findings: Findings) -> Iterator[_Row]:
    for leak in findings.leaks:
        if leak.state != INHERITED and not leak.is_held:
            yield leak.id, leak.kind, leak.type, leak.stack, leak.count, leak.bytes, leak.sample
    for error in failing_errors(findings):
        yield error_id(error), "error", _error_type(error), error.stack, error.count, None, None


def _rank(change: Change) -> tuple[int, int, int, str]:
    before, after = change.before or Amount(), change.after or Amount()
    sizes, counts = (after.bytes or 0) - (before.bytes or 0), after.count - before.count
    return _WORDS.index(change.word), -abs(sizes), -abs(counts), change.id
