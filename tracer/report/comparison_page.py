"""The page of a comparison: what is new, grown, shrunk and gone, with the stacks that make it."""

from __future__ import annotations

from typing import TextIO

from tracer.model.comparison import Amount, Change, Comparison
from tracer.report.comparison_words import SHOWN, amount_words, comparison_verdict, difference_words
from tracer.report.frame_table import FrameTable
from tracer.report.html_page import write_page

Json = dict[str, object]
_SCRIPTS = ("elements.js", "changes.js")


def write_comparison_html(comparison: Comparison, stream: TextIO, names: tuple[str, str]) -> None:
    """Write the page; `names` are those of the run before and of the run after."""
    write_page("refleak diff", _document(comparison, names), _SCRIPTS, stream)


def _document(comparison: Comparison, names: tuple[str, str]) -> Json:
    frames = FrameTable()
    return {
        "verdict": f"refleak: {comparison_verdict(comparison)}",
        "style": "bad" if comparison.worse else "good",
        "names": names,
        "amounts": [[word, len(comparison.of(word))] for word in (*SHOWN, "same")],
        "changes": [_change(change, frames) for word in SHOWN for change in comparison.of(word)],
        "frames": frames.documents,
    }


def _change(change: Change, frames: FrameTable) -> Json:
    return {
        "id": change.id,
        "word": change.word,
        "kind": change.kind,
        "type": change.type,
        "then": _amount(change, change.before, change.held),
        "now": _amount(change, change.after, change.held),
        "difference": difference_words(change.grown),
        "count": change.grown.count,
        "bytes": change.grown.bytes or 0,
        "stack": frames.of(change.stack),
        "own": change.own_frame,
    }


def _amount(change: Change, amount: Amount | None, held: Amount | None) -> str:
    if amount is None:
        return "" if held is None else f"held: {amount_words(change, held)}"
    return amount_words(change, amount)
