"""The JSON report: valid against its schema, sorted, and honest about what is not known."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hand_made import LOSSES, Code, blocks, server, snapshot

from tracer import __version__
from tracer.analysis import analyse
from tracer.model.findings import Findings, Holder, UnpairedGet
from tracer.report import write_json

SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "report.schema.json").read_text())


def written(findings: Findings) -> dict[str, Any]:
    stream = io.StringIO()
    write_json(findings, stream)
    assert stream.getvalue().isascii()
    document: dict[str, Any] = json.loads(stream.getvalue())
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_an_empty_report_has_every_field() -> None:
    document = written(analyse(snapshot(processes=(), events_seen=0), {}))
    assert document["format"] == "refleak-report"
    assert document["tool"] == {"name": "refleak", "version": __version__}
    assert document["complete"] is True
    assert document["totals"]["allocations"] == {"made": 0, "freed": 0, "outstanding": 0, "outstanding_bytes": 0}
    for name in ("lost", "processes", "leaks", "errors", "notes"):
        assert document[name] == []


def test_a_full_report_is_valid_and_says_all() -> None:
    snap, code = server()
    document = written(analyse(replace(snap, losses=LOSSES), code.symbols))
    assert document["complete"] is False
    assert document["lost"][0] == {
        "reason": "map of live blocks full", "count": 300, "remedy": "--max-objects 2000000",
    }  # fmt: skip
    assert document["probes"] == {
        "attached": 34,
        "unresolved": [{"operation": "get", "type": "map", "function": "map__get", "reason": "inlined everywhere"}],
        "untraced": [],
        "missing": [],
        "inlined_not_covered": [
            {"function": "map__get", "copies": 3, "operation": "get", "type": "map",
             "reason": "its parameter was optimised away"},
        ],
    }
    assert [(p["pid"], p["parent"], p["ended"]) for p in document["processes"]] == [
        (812, None, {"code": 0, "signal": None, "by_exec": False}),
        (813, 812, {"code": 3, "signal": None, "by_exec": False}),
    ]
    assert [(e["kind"], e["type"], e["count"], e["bytes"], e["state"]) for e in document["leaks"]] == [
        ("reference", "dso", 2, None, "leaked"),
        ("allocation", "malloc", 7, 28672, "leaked"),
        ("allocation", "malloc", 1, 72, "leaked"),
        ("allocation", "malloc", 1, 13, "leaked"),
        ("mapping", "mmap", 1, 1 << 20, "leaked"),
        ("allocation", "malloc", 2, 8192, "inherited"),
    ]
    assert (document["suppressed"]["count"], document["suppressed"]["bytes"]) == (1, 4096)
    (error,) = document["errors"]
    assert (error["kind"], error["count"], error["address"]) == ("over-put", 2, "0x19100")
    assert [frame["function"] for frame in error["released_at"][:2]] == ["__refcnt__put", "map__delete"]


def test_the_entries_and_the_suppressed_make_up_the_totals() -> None:
    snap, code = server()
    document = written(analyse(snap, code.symbols))
    entries = [*document["leaks"], *document["suppressed"]["entries"]]
    own = [e for e in entries if e["kind"] == "allocation" and e["state"] != "inherited"]
    totals = document["totals"]
    assert sum(e["count"] for e in own) == totals["allocations"]["outstanding"] == 10
    assert sum(e["bytes"] for e in own) == totals["allocations"]["outstanding_bytes"]
    assert totals["mappings"] == {"outstanding": 1, "outstanding_bytes": 1 << 20}
    assert {row["type"]: row["outstanding"] for row in totals["references"]} == {"dso": 2, "map": 0}


def test_what_is_not_known_is_null() -> None:
    snap = snapshot(processes=(), allocations=blocks({"address": 1, "size": 3, "stack": 2 << 48}, site=77))
    (entry,) = written(analyse(snap, {}))["leaks"]
    assert (entry["type"], entry["made"], entry["own_frame"], entry["reachability"]) == (None, None, None, None)
    assert (entry["stack"], entry["stack_complete"], entry["stack_status"]) == ([], False, "lost")
    assert entry["instances"] == [
        {"address": "0x1", "size": 3, "references": None, "age_ns": 61 * 10**9, "thread": 812}
    ]


def test_a_frame_has_all_its_fields() -> None:
    code = Code()
    stack = code.stack(1, code.frame("f", "/src/f.c:3", inlined=True))
    (entry,) = written(analyse(snapshot(code, allocations=blocks({"address": 1, "stack": stack})), code.symbols))[
        "leaks"
    ]
    assert entry["maker"] == entry["stack"][0]["function"] == "malloc"
    assert entry["stack"][1:] == [
        {
            "function": "f", "module": "srv", "path": "/usr/bin/srv", "build_id": "aa11", "file": "/src/f.c",
            "line": 3, "inlined": True, "address": "0x1010", "offset": 4, "kind": "native", "language": None,
            "why_unknown": None,
        }
    ]  # fmt: skip


def test_unpaired_gets_have_a_place() -> None:
    snap, code = server()
    found = analyse(snap, code.symbols)
    get = UnpairedGet(found.leaks[0].stack, 2, "strong", "38 siblings were put")
    document = written(replace(found, leaks=(replace(found.leaks[0], unpaired=(get,)), *found.leaks[1:])))
    assert document["leaks"][0]["unpaired"][0]["confidence"] == "strong"


def test_the_schema_refuses_what_breaks_the_contract() -> None:
    document = written(analyse(snapshot(), {}))
    document["mode"] = "guessed"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMA)


def test_of_a_holders_stacks_the_innermost_frames_are_written() -> None:
    snap, code = server()
    findings = analyse(snap, code.symbols)
    leak = next(leak for leak in findings.leaks if leak.stack)
    deep = tuple(replace(leak.stack[0], address=address) for address in range(1, 31))
    holder = Holder(1, "block", stack=deep, freed_at=deep)
    (first, *_) = written(replace(findings, leaks=(replace(leak, holders=(holder,)),)))["leaks"]
    for stack in (first["holders"][0]["stack"], first["holders"][0]["freed_at"]):
        assert [int(frame["address"], 16) for frame in stack] == list(range(1, 21))
