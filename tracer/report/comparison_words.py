"""Comparisons in words, alike in all their formats."""

from __future__ import annotations

from tracer.model.comparison import Amount, Change, Comparison
from tracer.model.selection import Sample
from tracer.report.amount_words import NOUNS
from tracer.report.amounts import counted, size
from tracer.report.selection_words import estimate

SHOWN = ("new", "grown", "shrunk", "gone")


def comparison_verdict(comparison: Comparison) -> str:
    parts = [f"{len(comparison.of(word)):,} {word}" for word in (*SHOWN, "same") if comparison.of(word)]
    judged = "WORSE" if comparison.worse else "not worse"
    return f"{judged}: {', '.join(parts)}" if parts else "not worse: neither run has an entry"


def change_words(change: Change) -> str:
    now = change.after or change.before or Amount()
    text = amount_words(change, now)
    if change.before is not None and change.after is not None:
        text = f"{amount_words(change, change.before)} then, {text} now"
    if change.kind in ("allocation", "mapping"):
        text = f"{text} ({change.type or 'unknown allocator'})"
    if change.held is not None:
        return f"{text}; held {'then' if change.before is None else 'now'}: {amount_words(change, change.held)}"
    return f"{text}: {difference_words(change.grown)}" if change.before and change.after else text


def difference_words(grown: Amount) -> str:
    """Return "+2", or "+2, +8.0 KiB" where bytes are known."""
    bytes_ = grown.bytes or 0
    of_size = f", {'-' if bytes_ < 0 else '+'}{size(abs(bytes_))}" if bytes_ else ""
    return f"{grown.count:+,}{of_size}"


def amount_words(change: Change, amount: Amount) -> str:
    if change.kind == "reference":
        return f"{amount.count:,} x {change.type}"
    if change.kind == "error":
        return f"{amount.count:,} x {change.type}"
    noun = NOUNS.get(change.kind, "block")
    if amount.count_error or amount.bytes_error:
        sample = Sample(0, 0, amount.count_error**2, amount.bytes_error**2)
        return estimate(amount.bytes or 0, amount.count, noun, sample)
    return f"{size(amount.bytes or 0)} in {counted(amount.count, noun)}"
