"""One cause is one entry in the formats of services and on the page too."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from xml.etree import ElementTree

from hand_made import server
from test_cause_entries import LEAKS

from tracer.analysis import analyse
from tracer.model.findings import Findings
from tracer.report.cause_entries import cause_entries
from tracer.report.html_document import html_document
from tracer.report.junit import write_junit
from tracer.report.markdown import write_markdown
from tracer.report.sarif import write_sarif


def findings() -> Findings:
    snap, made = server()
    return replace(analyse(snap, made.symbols), leaks=tuple(LEAKS), errors=())


def test_markdown() -> None:
    out = io.StringIO()
    write_markdown(findings(), out)
    table = [line for line in out.getvalue().splitlines() if line.startswith("| ") and "type" not in line]
    rows = [line.split(" | ")[:6] for line in table]
    assert [(row[0], row[-1]) for row in rows[:2]] == [("| 1", "6"), ("| 2", "3")]
    assert ["kept alive by these" in " ".join(row) for row in rows].index(True) == 2
    assert "<summary>1. 6 objects of type map leaked" in out.getvalue()
    assert "the same cause: 2 more objects, created at\n  2\n  map_new  map.c:1" in out.getvalue()
    assert "kept alive by these, no cause of their own: 50 x str</pre>" in out.getvalue()
    assert "<summary>3." not in out.getvalue()


def test_markdown_with_less_shown_sums_the_rest() -> None:
    out = io.StringIO()
    write_markdown(findings(), out, top=1)
    assert "| | and 1 more entry | | | | 3 |" in out.getvalue()
    assert "| | **all** | | | | 59 |" in out.getvalue()


def test_junit() -> None:
    out = io.StringIO()
    write_junit(findings(), out)
    cases = ElementTree.fromstring(out.getvalue()).iter("testcase")
    failed = [case for case in cases if case.find("failure") is not None]
    assert [case.get("name") for case in failed] == ["reference map one", "reference dso two"]
    text = failed[0].findtext("failure") or ""
    assert text.splitlines()[0].startswith("6 objects of type map leaked")
    assert text.splitlines()[-1] == "kept alive by these, no cause of their own: 50 x str"
    assert "the same cause: 2 more objects, created at" in text


def test_sarif() -> None:
    out = io.StringIO()
    write_sarif(findings(), out)
    (run,) = json.loads(out.getvalue())["runs"]
    results = run["results"]
    assert [result["occurrenceCount"] for result in results] == [6, 3]
    assert results[0]["message"]["text"].splitlines()[-2:] == [
        "the same cause: 2 more objects, created at map_new (map.c:1)",
        "kept alive by these, no cause of their own: 50 x str",
    ]
    assert [stack["message"]["text"] for stack in results[0]["stacks"]] == ["made at", "the same cause, made at"]
    assert len(results[0]["properties"]["idsBelow"]) == 2
    assert "idsBelow" not in results[1]["properties"]


def test_the_page_lists_causes_and_has_all_for_its_pictures() -> None:
    leaks = html_document(findings())["leaks"]
    assert isinstance(leaks, list)
    assert [leak.get("below") for leak in leaks] == [2, None, None, 0]
    assert [leak["count"] for leak in leaks] == [4, 2, 50, 3]
    assert (leaks[0]["sum"], leaks[0]["births"][0][1]) == (6, 2)


def test_equal_causes_of_two_processes_are_two() -> None:
    assert len(cause_entries([LEAKS[0], replace(LEAKS[1], pid=8)])) == 2
