"""Two findings held against each other, entry by entry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tracer.analysis.identity import keys_of, stable_id
from tracer.analysis.own_frame import own_frame
from tracer.analysis.stacks import CallSite, lines_of
from tracer.analysis.verdict import failing_errors
from tracer.model.comparison import Amount, Change, Comparison
from tracer.model.findings import INHERITED, ErrorFinding, Findings, FrameList, Leak
from tracer.model.selection import Sample

_Row = tuple["_Entry", int, int | None, Sample | None]
_Functions = tuple[str, str | None, tuple[str, ...]]
_WORDS = ("new", "grown", "shrunk", "gone", "same")


def compare(before: Findings, after: Findings, *, with_held: bool = False) -> Comparison:
    """Match entries over all processes; what is suppressed or inherited takes no part, nor memory that something still
    points at, but for `with_held`.

    By stable id, but for call sites of the same functions: where those of one side are among those of the other, line
    by line, no line has moved, and each is held against itself.
    """
    old, new = _entries(before, with_held), _entries(after, with_held)
    held = [{} if with_held else _held(findings) for findings in (before, after)]
    changes = []
    for then, now in _matched(old, new):
        entry = now or then
        if entry is None:
            continue
        blind = 0
        if entry.kind == "allocation" and (then is None or now is None):
            blind = (before if then is None else after).selection.sample_bytes
        changes.append(Change(
            entry.id, entry.kind, entry.type, _amount(then), _amount(now), entry.stack, entry.own_frame, blind,
            _amount((held[0] if then is None else held[1] if now is None else {}).get(entry.id)),
        ))  # fmt: skip
    return Comparison(tuple(sorted(changes, key=_rank)))


def _amount(entry: _Entry | None) -> Amount | None:
    return None if entry is None else entry.amount


def error_id(error: ErrorFinding) -> str:
    """Return a name of a broken rule that stays the same over runs and rebuilds."""
    return stable_id("error", _error_type(error), keys_of(error.stack))


def _error_type(error: ErrorFinding) -> str:
    return f"{error.kind} of {error.type}" if error.type else error.kind


class _Entry:
    def __init__(self, id_: str, kind: str, type_: str | None, stack: FrameList, own: int | None) -> None:
        self.id, self.kind, self.type, self.stack, self.own_frame = id_, kind, type_, stack, own
        self.amount = Amount()
        self._sample = Sample()

    def add(self, count: int, size: int | None, sample: Sample | None) -> None:
        total = self.amount.bytes if size is None else size + (self.amount.bytes or 0)
        self._sample += sample or Sample()
        self.amount = Amount(
            self.amount.count + count, total, self._sample.count_error, self._sample.bytes_error
        )


def _entries(findings: Findings, with_held: bool) -> dict[str, _Entry]:
    return _summed(_rows(findings, with_held))


def _held(findings: Findings) -> dict[str, _Entry]:
    """Return the entries of what something still points at."""
    return _summed(_row(leak) for leak in findings.leaks if leak.state != INHERITED and leak.is_held)


def _summed(rows: Iterable[_Row]) -> dict[str, _Entry]:
    entries: dict[str, _Entry] = {}
    for entry, count, size, sample in rows:
        entries.setdefault(entry.id, entry).add(count, size, sample)
    return entries


def _row(leak: Leak) -> _Row:
    return _Entry(leak.id, leak.kind, leak.type, leak.stack, leak.start), leak.count, leak.bytes, leak.sample


def _matched(old: dict[str, _Entry], new: dict[str, _Entry]) -> Iterator[tuple[_Entry | None, _Entry | None]]:
    """Yield what is to be held against what; each entry once."""
    groups: dict[_Functions, tuple[dict[CallSite, _Entry], dict[CallSite, _Entry]]] = {}
    for side, entries in enumerate((old, new)):
        for entry in entries.values():
            keys, site = lines_of(entry.stack)
            groups.setdefault((entry.kind, entry.type, keys), ({}, {}))[side].setdefault(site, entry)
    taken: set[str] = set()
    for then, now in groups.values():
        if max(len(then), len(now)) > 1 and (then.keys() <= now.keys() or now.keys() <= then.keys()):
            for site in then.keys() & now.keys():
                yield then[site], now[site]
                taken |= {f"old {then[site].id}", f"new {now[site].id}"}
    left = [{id_: entry for id_, entry in side.items() if f"{name} {id_}" not in taken}
            for name, side in (("old", old), ("new", new))]  # fmt: skip
    for id_ in {**left[0], **left[1]}:
        yield left[0].get(id_), left[1].get(id_)


def _rows(findings: Findings, with_held: bool) -> Iterator[_Row]:
    for leak in findings.leaks:
        if leak.state != INHERITED and (with_held or not leak.is_held):
            yield _row(leak)
    for error in failing_errors(findings):
        own = own_frame(error.stack)
        yield _Entry(error_id(error), "error", _error_type(error), error.stack, own), error.count, None, None


def _rank(change: Change) -> tuple[int, bool, int, int, str]:
    """References first: there are few, and each holds more than it weighs."""
    grown = change.grown
    return _WORDS.index(change.word), change.kind != "reference", -abs(grown.bytes or 0), -abs(grown.count), change.id
