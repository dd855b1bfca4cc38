"""Interval reports: what is outstanding while a trace goes on, and how that differs from the report before."""

from __future__ import annotations

from typing import TextIO

from tracer.model.comparison import Amount, Change, Comparison
from tracer.model.findings import Findings, Growing, Leak
from tracer.model.late_holders import whole
from tracer.report.amounts import counted, duration
from tracer.report.class_words import CLASSES, outstanding_amount
from tracer.report.comparison_report import comparison_document
from tracer.report.entry_sentence import short_place
from tracer.report.holder_words import growing_lines, held_by
from tracer.report.json_report import DESCRIBED, growing_document, scan_document
from tracer.report.json_text import JsonText
from tracer.report.look_words import look_lines
from tracer.report.page import Page, page_for
from tracer.report.weights import reported

FORMAT, VERSION = "refleak-interval", 1
_MARKS = {"new": "new", "gone": "gone", "same": "="}


def write_interval(
    number: int, findings: Findings, comparison: Comparison, stream: TextIO, top: int = 10,
    growing: Growing | None = None, *, width: int | None = None, color: bool | None = None,
) -> None:  # fmt: skip
    """Write one line on what is outstanding, and at most `top` entries: first those that changed, then the biggest.

    `comparison`: with the report before, or with nothing.
    """
    page = page_for(stream, width)
    what = outstanding_amount(reported(findings)) or "nothing"
    lost = "" if findings.complete else "; data were lost"
    page.heading(f"refleak: {number}: outstanding after {duration(findings.duration_ns)}: {what}{lost}")
    for line in look_lines(findings.scans):
        page.line(f"  {line}")
    for line in growing_lines(growing):
        page.paragraph(line, "    ", "  ")
    changed = [change for change in comparison.changes if change.word != "same"]
    same = sorted(comparison.of("same"), key=lambda c: (-(_now(c).bytes or 0), -_now(c).count, c.id))
    rows = [*changed, *same]
    if rows:
        page.line(f"  {'bytes':>13}{'count':>11}  {'change':<10}")
    for change in rows[:top]:
        _add(page, change)
        for leak in findings.leaks:
            if leak.id == change.id and leak.reachability is not None:
                page.paragraph(_reached(leak), " " * 29, " " * 27)
    if len(rows) > top:
        page.line(f"  and {counted(len(rows) - top, 'more entry', 'more entries')}")
    page.write(stream, color)
    stream.flush()


def _reached(leak: Leak) -> str:
    """Return "7 lost", "13 still reachable, held by list [lives_on]"."""
    words = f"{leak.count:,} {CLASSES[leak.reachability or '']}"
    lines = held_by(leak.holders)
    return f"{words}, {lines[0].rpartition(':')[0]}" if lines else words


def _now(change: Change) -> Amount:
    return change.after or Amount()


def _add(page: Page, change: Change) -> None:
    now = _now(change)
    size = "" if change.kind in ("reference", "error") else f"{now.bytes or 0:,}"
    mark = _MARKS.get(change.word) or _difference(change.grown)
    where = short_place(change.stack[change.own_frame or 0] if change.stack else None)
    what = f"{change.type} from {where}" if change.kind in ("reference", "error") else where
    lead = f"  {size:>13}{now.count:>11,}  {mark:<10}  "
    page.ends(lead + what[: max(20, page.width - len(lead) - 14)], change.id)


def _difference(grown: Amount) -> str:
    return f"{grown.count:+,}" if grown.count else f"{grown.bytes or 0:+,} B"


def write_interval_json(
    number: int, findings: Findings, comparison: Comparison, stream: TextIO, growing: Growing | None = None
) -> None:
    """Write one JSON document on one line: what is outstanding by id, and the difference as `refleak diff` has it."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "number": number,
        "time_ns": findings.duration_ns,
        "complete": findings.complete,
        "growing": growing_document(growing),
        "scans": [scan_document(scan) for scan in findings.scans],
        "outstanding": [
            {
                "id": leak.id,
                "kind": leak.kind,
                "type": leak.type,
                "pid": leak.pid,
                "count": leak.count,
                "bytes": leak.bytes,
                "trend": leak.trend.word if leak.trend else None,
                "reachability": leak.reachability,
                "holders": whole(leak.holders) or (),
            }
            for leak in reported(findings)
        ],
        "difference": comparison_document(comparison),
    }
    JsonText(DESCRIBED).write_line(document, stream)
