"""Comparison reports of two runs, for people and for programs."""

from __future__ import annotations

from typing import TextIO

from tracer import __version__
from tracer.model.comparison import Amount, Change, Comparison
from tracer.model.selection import Sample
from tracer.report.amount_words import NOUNS
from tracer.report.amounts import counted, size
from tracer.report.json_report import frame_document
from tracer.report.json_text import JsonText
from tracer.report.page import Page, stream_color, stream_width
from tracer.report.selection_words import estimate
from tracer.report.stack_lines import chain

FORMAT, VERSION = "refleak-diff", 1
_WORDS = ("new", "grown", "shrunk", "gone")


def write_comparison(comparison: Comparison, stream: TextIO, top: int = 10) -> None:
    """Write the verdict, then the new, the grown, the shrunk and the gone; at most `top` of each."""
    page = Page(stream_width(stream))
    verdict = _verdict(comparison)
    page.heading(f"refleak: {verdict}", "bad" if comparison.worse else "good")
    for word in _WORDS:
        changes = comparison.of(word)
        for change in changes[:top]:
            _add(page, change)
        if len(changes) > top:
            page.blank()
            page.line(f"and {len(changes) - top:,} more {word} (--top {len(changes)} lists all)")
    page.write(stream, stream_color(stream))


def _verdict(comparison: Comparison) -> str:
    parts = [f"{len(comparison.of(word)):,} {word}" for word in (*_WORDS, "same") if comparison.of(word)]
    judged = "WORSE" if comparison.worse else "not worse"
    return f"{judged}: {', '.join(parts)}" if parts else "not worse: neither run has an entry"


def _add(page: Page, change: Change) -> None:
    page.blank()
    page.heading(f"{change.word}: {_what(change)}")
    page.ends("    at", f"id {change.id}")
    for line in chain(change.stack, page.width - 6):
        page.line("      ", line)


def _what(change: Change) -> str:
    now = change.after or change.before or Amount()
    text = _amount(change, now)
    if change.before is not None and change.after is not None:
        text = f"{_amount(change, change.before)} then, {text} now"
    if change.kind in ("allocation", "mapping"):
        text = f"{text} ({change.type or 'unknown allocator'})"
    return f"{text}: {_difference(change.grown)}" if change.before and change.after else text


def _difference(grown: Amount) -> str:
    """Return "+2", or "+2, +8.0 KiB" where bytes are known."""
    bytes_ = grown.bytes or 0
    of_size = f", {'-' if bytes_ < 0 else '+'}{size(abs(bytes_))}" if bytes_ else ""
    return f"{grown.count:+,}{of_size}"


def _amount(change: Change, amount: Amount) -> str:
    if change.kind == "reference":
        return f"{amount.count:,} x {change.type}"
    if change.kind == "error":
        return f"{amount.count:,} x {change.type}"
    noun = NOUNS.get(change.kind, "block")
    if amount.count_error or amount.bytes_error:
        sample = Sample(0, 0, amount.count_error**2, amount.bytes_error**2)
        return estimate(amount.bytes or 0, amount.count, noun, sample)
    return f"{size(amount.bytes or 0)} in {counted(amount.count, noun)}"


def write_comparison_json(comparison: Comparison, stream: TextIO) -> None:
    """Write one JSON document: `worse`, and a list for each of new, grown, shrunk and gone."""
    JsonText(frame_document).write(comparison_document(comparison), stream)


def comparison_document(comparison: Comparison) -> dict[str, object]:
    """Return it as what JsonText writes."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "tool": {"name": "refleak", "version": __version__},
        "worse": comparison.worse,
        "same": len(comparison.of("same")),
        **{word: map(_document, comparison.of(word)) for word in _WORDS},
    }


def _document(change: Change) -> dict[str, object]:
    return {
        "id": change.id,
        "kind": change.kind,
        "type": change.type,
        "before": _amount_document(change.before),
        "after": _amount_document(change.after),
        "stack": change.stack,
    }


def _amount_document(amount: Amount | None) -> dict[str, int | None] | None:
    if amount is None:
        return None
    known: dict[str, int | None] = {"count": amount.count, "bytes": amount.bytes}
    if amount.count_error or amount.bytes_error:
        known |= {"count_error": amount.count_error, "bytes_error": amount.bytes_error}
    return known
