"""Findings in the formats of services: SARIF, JUnit's XML, Markdown, SVG."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hand_made import LOSSES, Code, blocks, process, server, snapshot
from junitparser import Error, Failure, JUnitXml, Skipped
from pydantic import ValidationError
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as OfficialSchema
from sarif_pydantic import Sarif

from tracer.analysis import analyse
from tracer.model.findings import Findings
from tracer.model.frames import Frame
from tracer.model.snapshot import Coverage, Unresolved, Untraced
from tracer.report.flame_svg import write_flame_svg
from tracer.report.junit import write_junit
from tracer.report.markdown import code, plain, write_markdown
from tracer.report.sarif import write_sarif
from tracer.report.source_location import source_place

HOSTILE = "]]></x><b>`|*\x1b[31m\n\x00\udcff\ufffe&amp;\"'~~@all"


def findings(**more: Any) -> Findings:
    snap, made = server()
    return replace(analyse(snap, made.symbols), **more)


def hostile() -> Findings:
    made = Code()
    stack = made.stack(1, made.frame(HOSTILE, f"{HOSTILE}.c:3"), made.frame("main"))
    snap = snapshot(
        made, processes=(process(command=(HOSTILE,), executable=f"/bin/{HOSTILE.replace('/', '')}"),),
        allocations=blocks({"size": 7, "stack": stack}, {"size": 9, "stack": 99}), losses=LOSSES, notes=(HOSTILE,),
    )  # fmt: skip
    return analyse(snap, made.symbols)


def sarif(found: Findings, root: str | None = None) -> dict[str, Any]:
    out = io.StringIO()
    write_sarif(found, out, root)
    document = json.loads(out.getvalue())
    OfficialSchema.model_validate(document)
    Sarif.model_validate(document)
    (run,) = document["runs"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    return dict(run)


def test_sarif_is_valid_whatever_was_found() -> None:
    for found in (findings(), hostile(), analyse(snapshot(), {}), analyse(snapshot(processes=()), {})):
        sarif(found, "/src")


def test_the_schema_refuses_what_is_no_sarif() -> None:
    out = io.StringIO()
    write_sarif(findings(), out, None)
    document = json.loads(out.getvalue())
    document["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(ValidationError, match="level"):
        OfficialSchema.model_validate(document)


def test_sarif_has_a_result_per_entry_and_error() -> None:
    results = sarif(findings())["results"]
    assert [(r["ruleId"], r["level"], r["occurrenceCount"]) for r in results] == [
        ("reference", "error", 2), ("allocation", "error", 7), ("allocation", "error", 1), ("allocation", "error", 1),
        ("mapping", "error", 1), ("over-put", "error", 2),
    ]  # fmt: skip
    assert results[0]["message"]["text"].splitlines() == [
        "2 objects of type dso leaked from dso__new (dso.c:88)",
        "2 gets never put (weak): __refcnt__get < map__new < thread__insert_map < main < libc.so.6+0x1020 < _start",
        "2 references of the creator never put (weak): __refcnt__init < dso__new < machine__findnew_dso < main"
        " < libc.so.6+0x1020 < _start",
        "the counter of 1 of 2 changed without a traced call: one reads 3 where gets and puts give 2",
    ]
    assert results[5]["message"]["text"] == "over-put of dso, 2 times, in thread__exit (thread.c:99)"
    assert [stack["message"]["text"] for stack in results[5]["stacks"]] == ["offending call", "released at", "made at"]


def test_sarif_has_no_result_of_what_is_suppressed() -> None:
    """Services that do not know suppressions would open an alert for each."""
    run = sarif(findings())
    assert [result for result in run["results"] if "suppressions" in result] == []
    assert run["properties"]["suppressed"] == [
        {"id": findings().suppressed[0].id, "by": "built-in:stdio-buffer", "count": 1, "bytes": 4096}
    ]


def test_sarif_fingerprints_are_the_stable_ids() -> None:
    found = findings()
    results = [r for r in sarif(found)["results"] if "suppressions" not in r and "partialFingerprints" in r]
    assert [r["partialFingerprints"]["refleakStack/v1"] for r in results] == [
        leak.cause or leak.id for leak in found.leaks if leak.state != "inherited"
    ]


def test_sarif_places_are_relative_to_the_source_root() -> None:
    run = sarif(findings(), "/src")
    assert run["originalUriBaseIds"] == {"SRCROOT": {"uri": "file:///src/"}}
    page = run["results"][1]
    (location,) = page["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "body.c", "uriBaseId": "SRCROOT"}, "region": {"startLine": 118},
    }  # fmt: skip
    assert location["logicalLocations"] == [{"fullyQualifiedName": "parse_body", "kind": "function"}]
    frames = [f["location"]["physicalLocation"]["artifactLocation"] for f in page["stacks"][0]["frames"]]
    assert frames[2:4] == [{"uri": "net/http.c", "uriBaseId": "SRCROOT"}] * 2
    assert frames[0] == {"uri": "file:///lib/x86_64-linux-gnu/libc.so.6"}
    without = sarif(findings())
    assert "originalUriBaseIds" not in without
    assert "file:///src/net/http.c" in json.dumps(without)


@pytest.mark.parametrize(
    ("file", "root", "path", "uri"),
    [
        ("/src/a b/x.c", "/src", "a b/x.c", "a%20b/x.c"),
        ("/src/a/../b/./x.c", "/src", "b/x.c", "b/x.c"),
        ("/srcs/x.c", "/src", "/srcs/x.c", "file:///srcs/x.c"),
        ("/../x.c", None, "/x.c", "file:///x.c"),
        ("../lib/x.c", "/src", "../lib/x.c", "../lib/x.c"),
        ("a/../../x.c", None, "../x.c", "../x.c"),
        ("x#1?.c", None, "x#1?.c", "x%231%3F.c"),
    ],
)
def test_source_places(file: str, root: str | None, path: str, uri: str) -> None:
    place = source_place(Frame("f", file=file, line=3), root)
    assert place is not None
    assert (place.path, place.uri, place.line) == (path, uri, 3)


def test_what_was_lost_is_a_notification() -> None:
    (invocation,) = sarif(hostile())["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"][0] == {
        "level": "warning",
        "message": {"text": "300 lost: map of live blocks full; cure: --max-objects 2000000"},
    }


def test_what_was_not_seen_is_a_notification_and_no_passed_case(tmp_path: Path) -> None:
    gap = Unresolved("create", "conn", "conn_new", "is an IFUNC")
    static = [Untraced(pid, 1, "/bin/static", "it is static and has no symbols") for pid in (813, 814)]
    found = analyse(snapshot(coverage=Coverage(3, (gap,), untraced=tuple(static))), {})
    (invocation,) = sarif(found)["invocations"]
    assert [one["message"]["text"] for one in invocation["toolExecutionNotifications"]] == [
        "not all of conn was seen: no probe on conn_new (create: is an IFUNC)",
        "/bin/static was not traced: it is static and has no symbols",
    ]
    (whole,) = junit(found, tmp_path)[-1].result
    assert isinstance(whole, Skipped)
    assert whole.message == "not complete: not all of conn was seen; 2 of 3 programs were not traced"


def junit(found: Findings, directory: Path) -> list[Any]:
    path = directory / "leaks.xml"
    with open(path, "w", encoding="utf-8") as stream:
        write_junit(found, stream, "/src")
    (suite,) = JUnitXml.fromfile(str(path))
    cases = list(suite)
    assert suite.tests == len(cases)
    kinds = (Failure, Error, Skipped)
    counts = [sum(any(isinstance(r, kind) for r in case.result) for case in cases) for kind in kinds]
    assert [suite.failures, suite.errors, suite.skipped] == counts
    return cases


def test_junit_has_a_case_per_process_leak_and_error(tmp_path: Path) -> None:
    cases = junit(findings(), tmp_path)
    outcomes = [type(case.result[0]).__name__ if case.result else "passed" for case in cases]
    assert outcomes == ["passed"] * 2 + ["Failure"] * 5 + ["Error", "Skipped"]
    assert cases[0].name == "./srv --port 80: exited with status 0"
    assert (cases[3].classname, cases[3].name) == ("refleak.srv", "allocation malloc ca22a120ac9f")
    sentence = "28.0 KiB (28,672 bytes) leaked in 7 blocks (malloc) from parse_body (body.c:118)"
    assert cases[3].result[0].message == sentence
    assert "handle_request  /src/net/http.c:402  (inlined)" in cases[3].result[0].text
    assert cases[7].name == "over-put dso in thread__exit"
    assert "made at" in cases[7].result[0].text


def test_junit_has_the_same_names_in_the_next_run(tmp_path: Path) -> None:
    found = findings()
    again = replace(
        found,
        processes=tuple(replace(process, pid=process.pid + 1000) for process in found.processes),
        leaks=tuple(replace(leak, pid=leak.pid + 1000) for leak in found.leaks),
        errors=tuple(replace(error, pid=error.pid + 1000) for error in found.errors),
    )
    before, after = ([(case.classname, case.name) for case in junit(run, tmp_path)] for run in (found, again))
    assert before == after
    assert len({classname for classname, _ in before if classname.startswith("refleak.srv")}) == 2
    assert '<property name="pid" value="1812" />' in (tmp_path / "leaks.xml").read_text()


def test_junit_has_no_name_twice(tmp_path: Path) -> None:
    found = findings()
    cases = junit(replace(found, leaks=found.leaks * 2, errors=found.errors * 2), tmp_path)
    names = [(case.classname, case.name) for case in cases]
    assert len(set(names)) == len(names)
    assert "allocation malloc ca22a120ac9f (2)" in [name for _, name in names]


def test_junit_does_not_fail_what_is_not_judged(tmp_path: Path) -> None:
    snap, made = server()
    attached = analyse(replace(snap, mode="attached", target_ended=False, losses=LOSSES), made.symbols)
    outcomes = [type(case.result[0]).__name__ if case.result else "passed" for case in junit(attached, tmp_path)]
    assert "Failure" not in outcomes
    assert outcomes[-1] == "Skipped"


def test_what_was_alive_at_an_exec_fails_nothing(tmp_path: Path) -> None:
    found = findings()
    at_exec = replace(found, errors=(), leaks=tuple(replace(leak, state="alive-at-exec") for leak in found.leaks))
    outcomes = [type(case.result[0]).__name__ if case.result else "passed" for case in junit(at_exec, tmp_path)]
    assert "Failure" not in outcomes and "Skipped" in outcomes
    out = io.StringIO()
    write_sarif(at_exec, out)
    assert {result["level"] for result in json.loads(out.getvalue())["runs"][0]["results"]} == {"note"}


def test_junit_stands_any_name(tmp_path: Path) -> None:
    cases = junit(hostile(), tmp_path)
    assert "\\x1b[31m" in cases[1].result[0].text + cases[2].result[0].text


def markdown(found: Findings, top: int = 10) -> str:
    out = io.StringIO()
    write_markdown(found, out, top)
    return out.getvalue()


def test_markdown_begins_with_the_verdict() -> None:
    lines = markdown(findings()).splitlines()
    assert lines[0] == (
        "## :x: refleak: LEAK: 2 objects of 1 type, 28.1 KiB in 9 blocks, 1.0 MiB in 1 mapping, 1 error (over-put)"
    )
    assert lines[2] == (
        "**not all of map was seen: no probe on 3 inlined copies of map&#95;&#95;get (get: "
        "its parameter was optimised away)**"
    )
    assert lines[8] == (
        "| 1 | reference | <code>dso</code> | leaked | one-off | 2 |  "
        "| <code>dso&#95;&#95;new &#40;dso&#46;c&#58;88&#41;</code> | <code>7235c2380deb</code> |"
    )
    assert markdown(analyse(snapshot(), {})).startswith("## :white_check_mark: refleak: clean\n")


def test_markdown_stays_short() -> None:
    one = findings().leaks[1]
    many = findings(leaks=tuple(replace(one, id=f"{number:012x}") for number in range(5000)))
    text = markdown(many)
    assert len(text) < 20_000
    assert "| | and 4,990 more entries | | | | 34,930 | 143,073,280 | | |" in text
    assert "| | **all** | | | | 35,000 | 143,360,000 | | |" in text


def test_markdown_has_one_row_for_what_many_processes_have() -> None:
    """In the order of what they all have; an entry of one process alone stays what it is."""
    one, other = findings().leaks[1], replace(findings().leaks[1], id="0123456789ab", bytes=30_000, made=8, freed=1)
    shared = [replace(one, pid=pid, bytes=10_000 - pid, count=2, made=3, freed=1) for pid in range(100, 104)]
    text = markdown(findings(leaks=(other, *shared)))
    row = r"^\| \d+ \|.*\| ([\d,]+) \| ([\d,]+) \| <code>.*</code>(.*) \| <code>(.*)</code> \|$"
    rows = re.findall(row, text, re.MULTILINE)
    assert rows == [("8", "39,594", ", in 4 processes", one.id), ("7", "30,000", "", "0123456789ab")]
    assert re.search(r"in 8 blocks .*, in 4 processes</summary>", text)
    assert "| | **all** | | | | 15 | 69,594 | | |" in text


def test_markdown_tells_two_programs_of_one_process_from_two_processes() -> None:
    one = findings().leaks[1]
    text = markdown(findings(leaks=(one, replace(one, generation=2), replace(one, owner="0123456789ab"))))
    assert len(re.findall(r"^\| \d+ \| allocation", text, re.MULTILINE)) == 2 and "processes" not in text


def test_markdown_keeps_references_of_each_process_apart() -> None:
    one = findings().leaks[0]
    assert one.kind == "reference"
    text = markdown(findings(leaks=(one, replace(one, pid=one.pid + 1))))
    assert len(re.findall(r"^\| \d+ \| reference", text, re.MULTILINE)) == 2


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)


def test_markdown_stands_any_name() -> None:
    text = markdown(hostile())
    parser = Elements()
    parser.feed(text)
    assert parser.seen == {"code", "details", "summary", "pre"}
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(row.split("|")) for row in rows} == {11}
    assert all(character.isprintable() or character == "\n" for character in text)
    for block in re.findall(r"<pre>(.*?)</pre>", text, re.DOTALL):
        assert "\n\n" not in block


def test_entities() -> None:
    assert code("a|b_c") == "<code>a&#124;b&#95;c</code>"
    assert plain("2 x <T*> at 0x1") == "2 x &#60;T&#42;&#62; at 0x1"


def svg(found: Findings) -> ElementTree.Element:
    out = io.StringIO()
    write_flame_svg(found, out)
    return ElementTree.fromstring(out.getvalue())


def test_the_flame_graph_has_a_graph_per_unit() -> None:
    memory, references = svg(findings()).findall("{*}g")
    titles = [title.text for title in memory.iter("{http://www.w3.org/2000/svg}title")]
    assert titles[0] == "memory: 1.0 MiB (1,077,333 bytes) in 10 blocks (100.0 %)"
    assert "parse_body: 28.0 KiB (28,672 bytes) in 7 blocks (2.7 %)" in titles
    assert "[dso]: 2 objects (100.0 %)" in [t.text for t in references.iter("{http://www.w3.org/2000/svg}title")]


def test_boxes_lie_within_their_callers() -> None:
    memory = svg(findings()).findall("{*}g")[0]
    boxes: dict[float, list[tuple[float, float]]] = {}
    for box in memory.iter("{http://www.w3.org/2000/svg}rect"):
        left, width = float(box.get("x", "")), float(box.get("width", ""))
        boxes.setdefault(float(box.get("y", "")), []).append((left, left + width))
    rows = [boxes[top] for top in sorted(boxes)]
    for above, below in pairwise(rows):
        assert all(any(a - 0.02 <= left and right <= b + 0.02 for a, b in above) for left, right in below)
        assert all(b <= c + 0.02 for (_, b), (c, _) in pairwise(sorted(below)))


@pytest.mark.parametrize("found", [hostile, lambda: analyse(snapshot(processes=()), {})], ids=["hostile", "nothing"])
def test_the_picture_stands_any_name_and_nothing(found: Callable[[], Findings]) -> None:
    root = svg(found())
    assert {element.tag.partition("}")[2] for element in root.iter()} <= {"svg", "style", "rect", "text", "g", "title"}
