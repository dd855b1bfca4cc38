"""Findings for code scanning: SARIF 2.1.0."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TextIO

from tracer.model.findings import LEAKED, REMARKS, ErrorFinding, Findings, FrameList, Leak
from tracer.model.visible import visible
from tracer.report.cause_entries import CauseEntry, cause_entries, hanging_words, same_cause_words
from tracer.report.class_words import SHOWN, held_lines
from tracer.report.entry_sentence import error_sentence, leak_sentence, offender, short_place
from tracer.report.sarif_parts import Json, Place, fingerprints, head, locations, places, stack_document, write_log
from tracer.report.source_location import main_frame
from tracer.report.stack_lines import name
from tracer.report.unpaired_sentence import accused
from tracer.report.weights import listed


def write_sarif(
    findings: Findings, stream: TextIO, source_root: str | None = None, show: Sequence[str] = SHOWN
) -> None:
    """Write one log of one run. Files below `source_root`, an absolute directory, are named relative to SRCROOT."""
    place = places(source_root)
    leaks = [_leak(entry, place) for entry in cause_entries(listed(findings, show))]
    errors = [_error(error, place) for error in findings.errors]
    run: Json = {
        "invocations": [_invocation(findings)],
        "results": [*leaks, *errors],
        "properties": {
            "mode": findings.mode, "complete": findings.is_whole,
            # No results: services that do not read `suppressions` would count them as open, and open one for each note.
            "suppressed": [_suppressed(leak) for leak in findings.suppressed],
            "held": held_lines(findings, show),
        },
    }  # fmt: skip
    write_log(run, stream, source_root)


def _invocation(findings: Findings) -> Json:
    made: Json = {
        # Of the tool, not of the target: what it failed to see are its own failures.
        "executionSuccessful": findings.complete,
        "toolExecutionNotifications": [{"level": "warning", "message": {"text": text}} for text in _unseen(findings)],
    }
    if findings.processes and findings.processes[0].command:
        made["properties"] = {"target": visible(shlex.join(findings.processes[0].command))}
    return made


def _unseen(findings: Findings) -> Iterator[str]:
    for loss in findings.losses:
        yield f"{loss.count} lost: {loss.reason}" + (f"; cure: {loss.remedy}" if loss.remedy else "")
    yield from findings.coverage_gaps
    for one in dict.fromkeys(replace(one, pid=0, generation=0) for one in findings.coverage.untraced):
        yield f"{visible(one.program)} was not traced: {one.reason}"


def _leak(entry: CauseEntry, place: Place) -> Json:
    leak = entry.summed
    lines = [leak_sentence(leak)]
    lines += [f"{accused(leak, get)} never put ({get.confidence}): {_path(get.stack)}" for get in leak.unpaired]
    lines += leak.notes
    if entry.others:
        lines.append(f"{same_cause_words(entry)} {', '.join(_place(other) for other in entry.others)}")
    lines += hanging_words(entry)
    stacks = [("made at", leak.stack), *(("the same cause, made at", other.stack) for other in entry.others)]
    return {
        **head(leak.kind, "error" if leak.state == LEAKED and not entry.is_held else "note", lines),
        "occurrenceCount": max(leak.count, 1),
        "partialFingerprints": fingerprints(entry.id),
        "stacks": [stack_document(what, stack, place) for what, stack in stacks if stack],
        "properties": {
            "id": leak.id, "pid": leak.pid, "state": leak.state, "type": leak.type,
            "reachability": leak.reachability,
            "count": leak.count, "bytes": leak.bytes, "stackStatus": leak.stack_status,
            **({"sampled": leak.sample.count} if leak.sample else {}),
            **({"idsBelow": [below.id for below in entry.leaks[1:]]} if entry.leaks[1:] else {}),
        },
        **locations(main_frame(leak), place),
    }  # fmt: skip


def _suppressed(leak: Leak) -> Json:
    return {"id": leak.id, "by": leak.suppressed_by, "count": leak.count, "bytes": leak.bytes}


def _error(error: ErrorFinding, place: Place) -> Json:
    stacks = [
        ("offending call", error.stack), ("released at", error.released_at),
        ("last got at", error.last_get), ("made at", error.created_at),
    ]  # fmt: skip
    return {
        **head(error.kind, "note" if error.kind in REMARKS else "error", [error_sentence(error)]),
        "occurrenceCount": max(error.count, 1),
        "stacks": [stack_document(what, stack, place) for what, stack in stacks if stack],
        "properties": {"pid": error.pid, "type": error.type, "address": hex(error.address), "times": error.count},
        **locations(offender(error), place),
    }


def _place(leak: Leak) -> str:
    return short_place(main_frame(leak))


def _path(stack: FrameList) -> str:
    return " < ".join(name(frame) for frame in stack[:6]) or "stack not kept"
