"""Findings for code scanning: SARIF 2.1.0.

Source of the format: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from functools import cache
from pathlib import PurePosixPath
from typing import TextIO

from tracer import __version__
from tracer.model.findings import ErrorFinding, Findings, FrameList, Leak
from tracer.model.frames import Frame
from tracer.model.visible import visible
from tracer.report.cause_entries import CauseEntry, cause_entries, kept_words, same_cause_words
from tracer.report.entry_sentence import error_sentence, leak_sentence, offender, short_place
from tracer.report.sarif_rules import RULES
from tracer.report.source_location import SourceLocation, main_frame, source_place
from tracer.report.stack_lines import name
from tracer.report.verdict_line import REMARKS
from tracer.report.weights import reported

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "SRCROOT"
_NUMBERS = {rule.id: number for number, rule in enumerate(RULES)}
_LEVELS = {"leaked": "error", "alive-at-exec": "warning"}
Json = dict[str, object]
Place = Callable[[Frame], Json]
"""Describes a frame, each one once."""


def write_sarif(findings: Findings, stream: TextIO, source_root: str | None = None) -> None:
    """Write one log of one run. Files below `source_root`, an absolute directory, are named relative to SRCROOT."""
    stream.write(json.dumps(_document(findings, source_root), separators=(",", ":")) + "\n")


def _document(findings: Findings, root: str | None) -> Json:
    place = cache(lambda frame: _location(frame, root))
    leaks = [_leak(entry, place) for entry in cause_entries(reported(findings))]
    errors = [_error(error, place) for error in findings.errors]
    run: Json = {
        "tool": {"driver": {"name": "refleak", "version": __version__, "rules": _rules()}},
        "invocations": [_invocation(findings)],
        "columnKind": "unicodeCodePoints",
        "results": [*leaks, *errors],
        "properties": {
            "mode": findings.mode, "complete": findings.is_whole,
            # No results: services that do not read `suppressions` would count them as open.
            "suppressed": [_suppressed(leak) for leak in findings.suppressed],
        },
    }  # fmt: skip
    if root is not None:
        uri = SourceLocation(root.rstrip("/") + "/", None, relative=False).uri
        run["originalUriBaseIds"] = {_ROOT: {"uri": uri}}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rules() -> list[Json]:
    return [
        {
            "id": rule.id,
            "name": rule.name,
            "shortDescription": {"text": rule.short},
            "fullDescription": {"text": rule.full},
            "defaultConfiguration": {"level": "note" if rule.id in REMARKS else "error"},
        }
        for rule in RULES
    ]


def _invocation(findings: Findings) -> Json:
    made: Json = {
        # Of the tool, not of the target: what it failed to see are its own failures.
        "executionSuccessful": findings.complete,
        "toolExecutionNotifications": [
            {
                "level": "warning",
                "message": {"text": f"{o.count} lost: {o.reason}" + (f"; cure: {o.remedy}" if o.remedy else "")},
            }
            for o in findings.losses
        ],
    }
    if findings.processes and findings.processes[0].command:
        made["properties"] = {"target": visible(shlex.join(findings.processes[0].command))}
    return made


def _leak(entry: CauseEntry, place: Place) -> Json:
    leak = entry.summed
    lines = [leak_sentence(leak)]
    lines += [f"{get.count} get(s) never put ({get.confidence}): {_path(get.stack)}" for get in leak.unpaired]
    lines += leak.notes
    if entry.others:
        lines.append(f"{same_cause_words(entry)} {', '.join(_place(other) for other in entry.others)}")
    lines += filter(None, [kept_words(entry)])
    stacks = [("made at", leak.stack), *(("the same cause, made at", other.stack) for other in entry.others)]
    return {
        **_head(leak.kind, "note" if entry.is_held else _LEVELS.get(leak.state, "note"), lines),
        "occurrenceCount": max(leak.count, 1),
        "partialFingerprints": _fingerprints(entry.id),
        "stacks": [_stack(what, stack, place) for what, stack in stacks if stack],
        "properties": {
            "id": leak.id, "pid": leak.pid, "state": leak.state, "type": leak.type,
            "reachability": leak.reachability,
            "count": leak.count, "bytes": leak.bytes, "stackStatus": leak.stack_status,
            **({"sampled": leak.sample.count} if leak.sample else {}),
            **({"idsBelow": [below.id for below in (*entry.others, *entry.kept)]} if entry.leaks[1:] else {}),
        },
        **_locations(main_frame(leak), place),
    }  # fmt: skip


def _suppressed(leak: Leak) -> Json:
    return {"id": leak.id, "by": leak.suppressed_by, "count": leak.count, "bytes": leak.bytes}


def _error(error: ErrorFinding, place: Place) -> Json:
    stacks = [
        ("offending call", error.stack), ("released at", error.released_at),
        ("last got at", error.last_get), ("made at", error.created_at),
    ]  # fmt: skip
    return {
        **_head(error.kind, "note" if error.kind in REMARKS else "error", [error_sentence(error)]),
        "occurrenceCount": max(error.count, 1),
        "stacks": [_stack(what, stack, place) for what, stack in stacks if stack],
        "properties": {"pid": error.pid, "type": error.type, "address": hex(error.address), "times": error.count},
        **_locations(offender(error), place),
    }


def _head(rule: str, level: str, lines: list[str]) -> Json:
    number = {"ruleIndex": _NUMBERS[rule]} if rule in _NUMBERS else {}
    return {"ruleId": rule, **number, "level": level, "message": {"text": "\n".join(lines)}}


def _fingerprints(id_: str) -> Json:
    """The second one is what code scanning services look at: without it they would hash the line, which moves."""
    return {"refleakStack/v1": id_, "primaryLocationLineHash": f"{id_}:1"}


def _locations(frame: Frame | None, place: Place) -> Json:
    return {"locations": [place(frame)] if frame is not None else []}


def _location(frame: Frame, root: str | None) -> Json:
    """A place in a source file, or else the binary."""
    made: Json = {"message": {"text": short_place(frame)}}
    at = source_place(frame, root)
    if at is not None:
        artifact = {"uri": at.uri, "uriBaseId": _ROOT} if at.relative else {"uri": at.uri}
        region = {"region": {"startLine": at.line}} if at.line else {}
        made["physicalLocation"] = {"artifactLocation": artifact, **region}
    elif frame.path is not None and PurePosixPath(frame.path).is_absolute():
        binary = SourceLocation(frame.path, None, relative=False)
        made["physicalLocation"] = {"artifactLocation": {"uri": binary.uri}}
    if frame.function:
        made["logicalLocations"] = [{"fullyQualifiedName": frame.function, "kind": "function"}]
    return made


def _stack(what: str, stack: FrameList, place: Place) -> Json:
    frames = [{"location": place(f), **({"module": f.module} if f.module else {})} for f in stack]
    return {"message": {"text": what}, "frames": frames}


def _place(leak: Leak) -> str:
    return short_place(main_frame(leak))


def _path(stack: FrameList) -> str:
    return " < ".join(name(frame) for frame in stack[:6]) or "stack not kept"
