"""Changes for code scanning: SARIF 2.1.0 with the state of each result against the run before."""

from __future__ import annotations

from typing import TextIO

from tracer.model.comparison import Amount, Change, Comparison
from tracer.report.comparison_words import SHOWN, change_words
from tracer.report.entry_sentence import short_place
from tracer.report.sarif_parts import Json, Place, fingerprints, head, locations, places, stack_document, write_log
from tracer.report.source_location import first_named

_STATES = {"new": "new", "grown": "updated", "shrunk": "updated", "same": "unchanged"}
_WORSE = ("new", "grown")


def write_comparison_sarif(comparison: Comparison, stream: TextIO, source_root: str | None = None) -> None:
    """Write one log of one run: a result for whatever the run after has, an error where it is new or has grown."""
    place = places(source_root)
    run: Json = {
        "results": [_result(change, place) for word in (*SHOWN, "same") if word in _STATES
                    for change in comparison.of(word)],
        "properties": {
            "worse": comparison.worse,
            # No results: services that do not read `baselineState` would count them as open.
            "gone": [{"id": change.id, "message": change_words(change)} for change in comparison.of("gone")],
        },
    }  # fmt: skip
    write_log(run, stream, source_root)


def _result(change: Change, place: Place) -> Json:
    own = change.own_frame
    frame = change.stack[own] if own is not None and own < len(change.stack) else first_named(change.stack)
    after = change.after or Amount()
    return {
        **head(_rule(change), "error" if change.word in _WORSE else "note",
               [f"{change.word}: {change_words(change)} from {short_place(frame)}"]),
        "baselineState": _STATES[change.word],
        "occurrenceCount": max(after.count, 1),
        "partialFingerprints": fingerprints(change.id),
        "stacks": [stack_document("made at", change.stack, place)] if change.stack else [],
        "properties": {
            "id": change.id, "type": change.type, "count": after.count, "bytes": after.bytes,
            "countDifference": change.grown.count, "bytesDifference": change.grown.bytes,
        },
        **locations(frame, place),
    }  # fmt: skip


def _rule(change: Change) -> str:
    """Return the kind; of a broken rule the first word of its type, "over-put of dso"."""
    return change.kind if change.kind != "error" else (change.type or "").partition(" ")[0]
