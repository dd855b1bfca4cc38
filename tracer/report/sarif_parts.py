"""SARIF logs: what reports and comparisons have alike.

Source of the format: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import PurePosixPath
from typing import TextIO

from tracer import __version__
from tracer.model.findings import REMARKS, FrameList
from tracer.model.frames import Frame
from tracer.report.entry_sentence import short_place
from tracer.report.sarif_rules import RULES
from tracer.report.source_location import SourceLocation, source_place

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "SRCROOT"
_NUMBERS = {rule.id: number for number, rule in enumerate(RULES)}
Json = dict[str, object]
Place = Callable[[Frame], Json]
"""Describes a frame, each one once."""


def write_log(run: Json, stream: TextIO, root: str | None) -> None:
    """Write one log of one run, on one line. Files below `root`, an absolute directory, are relative to SRCROOT."""
    driver = {"name": "refleak", "version": __version__, "rules": _rules()}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", **run}
    if root is not None:
        uri = SourceLocation(root.rstrip("/") + "/", None, relative=False).uri
        run["originalUriBaseIds"] = {_ROOT: {"uri": uri}}
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    stream.write(json.dumps(log, separators=(",", ":")) + "\n")


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


def head(rule: str, level: str, lines: list[str]) -> Json:
    """Return what a result begins with."""
    number = {"ruleIndex": _NUMBERS[rule]} if rule in _NUMBERS else {}
    return {"ruleId": rule, **number, "level": level, "message": {"text": "\n".join(lines)}}


def fingerprints(id_: str) -> Json:
    """The second one is what code scanning services look at: without it they would hash the line, which moves."""
    return {"refleakStack/v1": id_, "primaryLocationLineHash": f"{id_}:1"}


def locations(frame: Frame | None, place: Place) -> Json:
    """Return where a result is shown: nowhere without a frame."""
    return {"locations": [place(frame)] if frame is not None else []}


def places(root: str | None) -> Place:
    """Return what describes frames: by a place in a source file, or else by the binary."""
    return cache(lambda frame: _location(frame, root))


def _location(frame: Frame, root: str | None) -> Json:
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


def stack_document(what: str, stack: FrameList, place: Place) -> Json:
    """Return a stack, leaf first, with what it is."""
    frames = [{"location": place(f), **({"module": f.module} if f.module else {})} for f in stack]
    return {"message": {"text": what}, "frames": frames}
