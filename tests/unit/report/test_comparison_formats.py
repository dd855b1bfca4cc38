"""What a comparison says as JSON, as SARIF and as a page."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Page, browser, needs_chromium
from profile_readers import go_pprof, go_pprof_tags, needs_go
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as OfficialSchema

from tracer.model.comparison import Amount, Change, Comparison
from tracer.model.frames import Frame
from tracer.report.comparison_page import write_comparison_html
from tracer.report.comparison_pprof import write_comparison_pprof
from tracer.report.comparison_report import write_comparison_json
from tracer.report.comparison_sarif import write_comparison_sarif

HOSTILE = "</script><script>alert(1)</script>\udcff$title"
CREATE = (Frame("dso__new", "srv", "/bin/srv", file="/src/dso.c", line=88), Frame("main", "srv", "/bin/srv"))
PARSE = (Frame("malloc", "libc.so.6", "/lib/libc.so.6"), Frame("parse", "srv", "/bin/srv", file="/src/b.c", line=5))
CHANGES = Comparison((
    Change("r1", "reference", "dso", None, Amount(2), CREATE, 0),
    Change("a1", "allocation", HOSTILE, None, Amount(1, 64), ()),
    Change("a2", "allocation", "malloc", Amount(5, 20480), Amount(7, 28672), PARSE, 1),
    Change("e1", "error", "over-put of dso", Amount(3), Amount(1), CREATE),
    Change("m1", "mapping", "mmap", Amount(1, 4096), None, PARSE, 1),
    Change("a3", "allocation", "malloc", Amount(1, 8), Amount(1, 8), PARSE, 1),
))  # fmt: skip


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser")) as page:
        yield page


def sarif(comparison: Comparison, root: str | None = None) -> dict[str, Any]:
    out = io.StringIO()
    write_comparison_sarif(comparison, out, root)
    document = json.loads(out.getvalue())
    OfficialSchema.model_validate(document)
    (run,) = document["runs"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    return dict(run)


def test_json_says_the_difference() -> None:
    out = io.StringIO()
    write_comparison_json(CHANGES, out)
    found = json.loads(out.getvalue())
    assert [change["difference"] for change in found["new"]] == [{"count": 2, "bytes": None}, {"count": 1, "bytes": 64}]
    assert found["grown"][0]["difference"] == {"count": 2, "bytes": 8192}
    assert found["shrunk"][0]["difference"] == {"count": -2, "bytes": None}
    assert found["gone"][0]["difference"] == {"count": -1, "bytes": -4096}


def test_sarif_has_an_error_for_what_is_worse_and_a_state_for_all() -> None:
    results = sarif(CHANGES)["results"]
    assert [(r["ruleId"], r["baselineState"], r["level"], r["occurrenceCount"]) for r in results] == [
        ("reference", "new", "error", 2), ("allocation", "new", "error", 1), ("allocation", "updated", "error", 7),
        ("over-put", "updated", "note", 1), ("allocation", "unchanged", "note", 1),
    ]  # fmt: skip
    assert results[2]["message"]["text"] == (
        "grown: 20.0 KiB in 5 blocks then, 28.0 KiB in 7 blocks now (malloc): +2, +8.0 KiB from parse (b.c:5)"
    )
    assert results[0]["partialFingerprints"]["refleakStack/v1"] == "r1"
    assert results[1]["locations"] == results[1]["stacks"] == []


def test_sarif_has_no_result_of_what_is_gone() -> None:
    """Services that do not know baselines would open an alert for it."""
    said = "gone: 4.0 KiB in 1 mapping (mmap)"
    assert sarif(CHANGES)["properties"] == {"worse": True, "gone": [{"id": "m1", "message": said.partition(": ")[2]}]}
    assert sarif(Comparison(()))["results"] == []


def test_sarif_places_are_relative_to_the_source_root() -> None:
    run = sarif(CHANGES, "/src")
    assert run["originalUriBaseIds"] == {"SRCROOT": {"uri": "file:///src/"}}
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "dso.c", "uriBaseId": "SRCROOT"}, "region": {"startLine": 88}}


def opened(page: Page, comparison: Comparison, directory: Path) -> Page:
    page.requested.clear()
    page.complaints.clear()
    path = directory / "changes.html"
    with open(path, "w", encoding="utf-8") as stream:
        write_comparison_html(comparison, stream, ("old.refleak", HOSTILE))
    page.open(path)
    return page


def texts(page: Page, selector: str) -> list[str]:
    return list(page.run(f"[...document.querySelectorAll({selector!r})].map((e) => e.textContent)"))


@needs_go
def test_a_profile_has_the_differences(tmp_path: Path) -> None:
    path = tmp_path / "changes.pb.gz"
    with open(path, "wb") as stream:
        write_comparison_pprof(CHANGES, stream)
    found = go_pprof(path)
    assert found.types == ("objects/count", "space/bytes")
    assert [values for values, _ in found.samples] == [(2, 0), (1, 64), (2, 8192), (-2, 0), (-1, -4096)]
    assert any("parse /src/b.c:5" in line for lines in found.locations.values() for line in lines)
    assert go_pprof_tags(path)["change"] == {"new", "grown", "shrunk", "gone"}


@needs_go
def test_a_profile_is_one_of_the_program(tmp_path: Path) -> None:
    """Readers take the first binary for the program: "File: libc.so.6", they said."""
    path = tmp_path / "changes.pb.gz"
    stack = (Frame("malloc", "libc.so.6", "/lib/libc.so.6"), Frame("main", "srv", "/usr/bin/srv"))
    with open(path, "wb") as stream:
        write_comparison_pprof(Comparison((Change("a", "allocation", "malloc", None, Amount(1, 64), stack),)), stream)
    assert ["/usr/bin/srv" in line for line in go_pprof(path).mappings] == [True, False]


@needs_chromium
def test_the_page_lists_changes_with_old_and_new_and_the_difference(chromium: Page, tmp_path: Path) -> None:
    page = opened(chromium, CHANGES, tmp_path)
    assert page.requested == [(tmp_path / "changes.html").as_uri()] and page.complaints == []
    assert texts(page, "#verdict") == ["refleak: WORSE: 2 new, 1 grown, 1 shrunk, 1 gone, 1 same"]
    assert texts(page, ".tile b") == ["2", "1", "1", "1", "1"]
    assert texts(page, "#changes tr.entry td:nth-child(1)") == ["new", "new", "grown", "shrunk", "gone"]
    by = ["+2", "+1, +64 bytes", "+2, +8.0 KiB", "-2", "-1, -4.0 KiB"]
    assert texts(page, "#changes tr.entry td:nth-child(2)") == by
    assert texts(page, "#changes tr.entry td:nth-child(3)")[2:] == [
        "20.0 KiB in 5 blocks", "3 x over-put of dso", "4.0 KiB in 1 mapping",
    ]  # fmt: skip
    assert texts(page, "#changes tr.entry td:nth-child(4)")[2:] == ["28.0 KiB in 7 blocks", "1 x over-put of dso", ""]
    assert texts(page, "#changes tr.entry td:nth-child(7)")[:2] == ["dso__new dso.c:88", "(stack not kept)"]
    assert "main" in texts(page, "#changes tr.inside")[0]


@needs_chromium
def test_the_page_is_filtered_and_may_be_empty(chromium: Page, tmp_path: Path) -> None:
    page = opened(chromium, CHANGES, tmp_path)
    page.run("document.getElementById('filter').value = 'grown'")
    page.run("document.getElementById('filter').dispatchEvent(new Event('input'))")
    assert texts(page, "#changes tr.entry td:nth-child(8)") == ["a2"]
    assert texts(page, "#shown") == ["1 change"]
    page = opened(chromium, Comparison(()), tmp_path)
    assert texts(page, "#changes p") == ["Nothing is new, grown, shrunk or gone."] and page.complaints == []
