"""Comparison reports of two runs, as text and as JSON."""

from __future__ import annotations

from typing import TextIO

from tracer import __version__
from tracer.model.comparison import Amount, Change, Comparison
from tracer.report.comparison_words import SHOWN, change_words, comparison_verdict
from tracer.report.json_report import DESCRIBED, ON_ONE_LINE
from tracer.report.json_text import JsonText
from tracer.report.page import Page, Span, page_for
from tracer.report.stack_lines import chain

FORMAT, VERSION = "refleak-diff", 1


def write_comparison(
    comparison: Comparison, stream: TextIO, top: int = 10, *, width: int | None = None, color: bool | None = None
) -> None:  # fmt: skip
    """Write the verdict, then the new, the grown, the shrunk and the gone; at most `top` of each."""
    page = page_for(stream, width)
    verdict = verdict_span(comparison)
    page.heading(verdict.text, verdict.style)
    for word in SHOWN:
        changes = comparison.of(word)
        for change in changes[:top]:
            _add(page, change)
        if len(changes) > top:
            page.blank()
            page.line(f"and {len(changes) - top:,} more {word} (--top {len(changes)} lists all)")
    page.write(stream, color)


def verdict_span(comparison: Comparison) -> Span:
    """Return the first line of the report."""
    return Span(f"refleak: {comparison_verdict(comparison)}", "bad" if comparison.worse else "good")


def _add(page: Page, change: Change) -> None:
    page.blank()
    page.heading(f"{change.word}: {change_words(change)}")
    page.ends("    at", f"id {change.id}")
    for line in chain(change.stack, page.width - 6):
        page.line("      ", line)


def write_comparison_json(comparison: Comparison, stream: TextIO) -> None:
    """Write one JSON document: `worse`, and a list for each of new, grown, shrunk and gone."""
    JsonText(DESCRIBED, ON_ONE_LINE).write(comparison_document(comparison), stream)


def comparison_document(comparison: Comparison) -> dict[str, object]:
    """Return it as what JsonText writes."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "tool": {"name": "refleak", "version": __version__},
        "worse": comparison.worse,
        "same": len(comparison.of("same")),
        **{word: map(_document, comparison.of(word)) for word in SHOWN},
    }


def _document(change: Change) -> dict[str, object]:
    return {
        "id": change.id,
        "kind": change.kind,
        "type": change.type,
        "before": _amount_document(change.before),
        "after": _amount_document(change.after),
        "difference": {"count": change.grown.count, "bytes": _known_bytes(change)},
        "held": _amount_document(change.held),
        "stack": change.stack,
    }


def _amount_document(amount: Amount | None) -> dict[str, int | None] | None:
    if amount is None:
        return None
    known: dict[str, int | None] = {"count": amount.count, "bytes": amount.bytes}
    if amount.count_error or amount.bytes_error:
        known |= {"count_error": amount.count_error, "bytes_error": amount.bytes_error}
    return known


def _known_bytes(change: Change) -> int | None:
    """Return by how many bytes it grew; None of what has no size."""
    known = [amount for amount in (change.before, change.after) if amount is not None and amount.bytes is not None]
    return change.grown.bytes if known else None
