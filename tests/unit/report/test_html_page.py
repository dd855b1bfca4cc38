"""The interactive page, in a browser that nobody here wrote."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from browser import Page, browser, needs_chromium
from hand_made import SECOND, Code, blocks, process, server, snapshot
from test_cause_entries import LEAKS
from test_reached import BELOW_AT, HELD_AT, made, only

from tracer.analysis import analyse
from tracer.model.findings import DominatorNode, DominatorTree, Findings, Holder
from tracer.model.heap_course import HeapPoint, Survivors
from tracer.model.visible import visible
from tracer.report.html_page import write_html

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&amp;\u2028'\"`${x}$title"
BOXES = "[...document.querySelectorAll('#flame .box')]"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser")) as page:
        yield page


def server_findings() -> Findings:
    snap, code = server()
    return analyse(snap, code.symbols)


def opened(page: Page, findings: Findings, directory: Path) -> Page:
    page.requested.clear()
    page.complaints.clear()
    path = directory / "report.html"
    with open(path, "w", encoding="utf-8") as stream:
        write_html(findings, stream)
    page.open(path)
    return page


def texts(page: Page, selector: str) -> list[str]:
    return list(page.run(f"[...document.querySelectorAll({selector!r})].map((e) => e.textContent)"))


def typed(page: Page, field: str, text: str) -> None:
    page.run(f"document.getElementById({field!r}).value = {text!r}")
    page.run(f"document.getElementById({field!r}).dispatchEvent(new Event('input'))")


def widths(page: Page) -> dict[str, float]:
    boxes = page.run(f"{BOXES}.map((e) => [e.title.split('\\n')[0], e.style.width])")
    return {name: float(width.removesuffix("%")) for name, width in boxes}


@needs_chromium
def test_the_page_shows_all_and_asks_for_nothing(chromium: Page, tmp_path: Path) -> None:
    page = opened(chromium, server_findings(), tmp_path)
    assert page.requested == [(tmp_path / "report.html").as_uri()]
    assert page.complaints == []
    assert texts(page, "nav a") == [
        "Broken rules", "Entries", "Flame graph", "Over time", "Sizes", "References", "Processes",
    ]  # fmt: skip
    assert texts(page, "#verdict")[0].startswith("refleak: LEAK: 2 objects of 1 type, 28.1 KiB in 9 blocks")
    assert texts(page, "#shown") == ["5 entries: 1.0 MiB in 12 objects"]
    assert texts(page, "#leaks tr.entry td:first-child") == ["", "28,672", "72", "13", "1,048,576"]
    assert texts(page, "#leaks tr.entry td:nth-child(2)") == ["2", "7", "1", "1", "1"]
    assert texts(page, "#references table td:first-child") == ["dso", "map"]
    assert len(texts(page, "#processes tbody tr")) == 2


@needs_chromium
def test_the_first_entry_is_open_and_a_list_is_one_tab_stop(chromium: Page, tmp_path: Path) -> None:
    page = opened(chromium, server_findings(), tmp_path)
    assert ["dso__new" in text for text in texts(page, "#leaks tr.inside")] == [True]
    for rows in ("#leaks tr.entry", "#flame .box"):
        assert page.run(f"[...document.querySelectorAll({rows!r})].filter((e) => e.tabIndex === 0).length") == 1
    page.run("document.querySelector('#leaks tr.entry').focus()")
    page.run("document.activeElement.dispatchEvent("
             "new KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true}))")  # fmt: skip
    assert page.run("document.activeElement.querySelector('td').textContent") == "28,672"


@needs_chromium
def test_an_entry_begins_with_the_reference_that_was_never_put(chromium: Page, tmp_path: Path) -> None:
    page = opened(chromium, server_findings(), tmp_path)
    (said,) = texts(page, "#leaks tr.inside .summary")
    assert said.startswith("2 references to dso, ")
    assert "never put" in said
    inside = texts(page, "#leaks tr.inside")[0]
    assert inside.index(said) < inside.index("Created at")
    assert "2 gets never put (" in inside and "2 references of the creator never put (" in inside


@needs_chromium
def test_amounts_stand_on_top_and_sizes_in_bars(chromium: Page, tmp_path: Path) -> None:
    page = opened(chromium, server_findings(), tmp_path)
    assert texts(page, ".tile b")[0] == "2"
    assert texts(page, ".tile span:nth-child(2)")[0] == "counted objects"
    cells = "[...r.cells].map((c) => c.textContent)"
    rows = page.run(f"[...document.querySelectorAll('#sizes tbody tr')].map((r) => {cells})")
    assert [row for row in rows if row[2]] == [
        ["8 bytes", "", "13 bytes", "1"], ["64 bytes", "", "72 bytes", "1"],
        ["4.0 KiB", "", "28.0 KiB", "7"], ["1.0 MiB", "", "1.0 MiB", "1"],
    ]  # fmt: skip
    assert len(rows) == 18


@needs_chromium
def test_memory_is_told_with_its_objects(chromium: Page, tmp_path: Path) -> None:
    memory = replace(
        LEAKS[0], id="1" * 12, kind="allocation", type="malloc", bytes=64, cause=None, memory_of="one", unpaired=(),
        reachability="lost",
    )  # fmt: skip
    below = replace(memory, id="2" * 12, bytes=16, memory_of=None, reachability="indirect", owner="1" * 12)
    page = opened(chromium, replace(server_findings(), leaks=(*LEAKS, memory, below)), tmp_path)
    assert page.complaints == []
    assert texts(page, "#leaks tr.entry td:nth-child(2)") == ["6", "3"]
    assert texts(page, "#shown") == ["2 entries: 80 bytes in 67 objects"]
    inside = texts(page, "#leaks tr.inside")[0]
    assert "Their memory: 64 bytes lost in 4 blocks (malloc) from map_new (map.c:1) 111111111111" in inside
    assert "222222222222" in inside


@needs_chromium
def test_entries_of_one_cause_are_one_row(chromium: Page, tmp_path: Path) -> None:
    page = opened(chromium, replace(server_findings(), leaks=tuple(LEAKS)), tmp_path)
    assert page.complaints == []
    assert texts(page, "#leaks tr.entry td:nth-child(2)") == ["6", "3"]
    assert texts(page, "#shown") == ["2 entries: 0 bytes in 59 objects"]
    assert "kept alive by these, no cause of their own: 50 x str" in texts(page, "#leaks tr.inside")[0]
    assert {"[map]", "[dso]", "[str]"} <= set(widths(page))
    typed(page, "filter", "str_new")
    assert texts(page, "#leaks tr.entry td:nth-child(2)") == ["6"]


@needs_chromium
def test_the_flame_graph_zooms_and_searches(chromium: Page, tmp_path: Path) -> None:
    page = opened(chromium, server_findings(), tmp_path)
    before = widths(page)
    assert before["everything"] == 100
    assert before["parse_body"] == pytest.approx(100 * 28672 / 1077333, abs=1e-3)
    page.run(f"{BOXES}.find((e) => e.title.startsWith('parse_body')).click()")
    zoomed = widths(page)
    assert zoomed["parse_body"] == 100
    assert zoomed["main"] == 100
    assert "arena__map" not in zoomed
    assert texts(page, "#detail")[0].startswith("parse_body: 28.0 KiB = 28,672 bytes in 7 objects (2.7 %)")
    page.run("document.getElementById('reset').click()")
    assert widths(page) == before
    typed(page, "search", "ARENA")
    titles = page.run("[...document.querySelectorAll('.found')].map((e) => e.title)")
    assert [title.split("\n")[0] for title in titles] == ["arena__map"]
    assert texts(page, "#found") == ["97.3 % in what matches"]


@needs_chromium
def test_width_can_be_objects(chromium: Page, tmp_path: Path) -> None:
    page = opened(chromium, server_findings(), tmp_path)
    page.run("{ const s = document.querySelector('#flame-graph select'); s.value = 'count';"
             " s.dispatchEvent(new Event('change')); }")  # fmt: skip
    assert widths(page)["[dso]"] == pytest.approx(100 * 2 / 12, abs=1e-3)


@needs_chromium
def test_the_table_sorts_filters_and_opens(chromium: Page, tmp_path: Path) -> None:
    page = opened(chromium, server_findings(), tmp_path)
    page.run("document.querySelectorAll('#leaks th button')[1].click()")
    assert texts(page, "#leaks tr.entry td:nth-child(2)") == ["7", "2", "1", "1", "1"]
    page.run("document.querySelectorAll('#leaks th button')[1].click()")
    assert texts(page, "#leaks tr.entry td:nth-child(2)") == ["1", "1", "1", "2", "7"]
    typed(page, "filter", "dso__new")
    assert texts(page, "#shown") == ["1 entry: 0 bytes in 2 objects"]
    page.run("document.querySelector('#leaks tr.entry').click()")
    inside = texts(page, "#leaks tr.inside")[0]
    assert "4 gets" in inside
    assert "map__delete" in inside
    assert "the counter of 1 of 2 changed without a traced call" in inside
    page.run("document.querySelector('#leaks tr.entry').click()")
    assert texts(page, "#leaks tr.inside") == []


@needs_chromium
def test_the_balance_sums_by_call_path(chromium: Page, tmp_path: Path) -> None:
    page = opened(chromium, server_findings(), tmp_path)
    nets = [int(text) for text in texts(page, "#balance .net")]
    assert nets == [4, 4, 2, -2]
    assert "map__new" in texts(page, "#balance")[0]


@needs_chromium
def test_names_are_text_and_no_markup(chromium: Page, tmp_path: Path) -> None:
    code = Code()
    stack = code.stack(1, code.frame(HOSTILE, f"{HOSTILE}.c:1"), code.frame("main"))
    snap = snapshot(
        code, processes=(process(command=(HOSTILE, "\udc80")),), allocations=blocks({"size": 7, "stack": stack})
    )
    page = opened(chromium, analyse(snap, code.symbols), tmp_path)
    assert page.complaints == []
    assert page.requested == [(tmp_path / "report.html").as_uri()]
    assert page.run("document.querySelectorAll('script').length") == 2
    assert page.run("document.querySelectorAll('img').length") == 0
    assert visible(HOSTILE) in widths(page)


@needs_chromium
def test_a_clean_run_has_a_page_too(chromium: Page, tmp_path: Path) -> None:
    page = opened(chromium, analyse(snapshot(), {}), tmp_path)
    assert page.complaints == []
    assert texts(page, "nav a") == ["Entries", "Processes"]
    page = opened(chromium, analyse(snapshot(processes=()), {}), tmp_path)
    assert page.complaints == []


@needs_chromium
def test_many_entries_are_drawn_in_part(chromium: Page, tmp_path: Path) -> None:
    found = server_findings()
    one = found.leaks[1]
    many = replace(found, leaks=tuple(replace(one, id=f"{number:012x}") for number in range(3000)))
    page = opened(chromium, many, tmp_path)
    assert len(texts(page, "#leaks tr.entry")) == 50
    assert texts(page, "#shown")[0].startswith("3,000 entries")
    page.run("document.querySelector('#leaks td button').click()")
    assert len(texts(page, "#leaks tr.entry")) == 3000


@needs_chromium
def test_the_heap_is_no_less_than_what_is_left_of_it(chromium: Page, tmp_path: Path) -> None:
    """It was drawn without mappings, and straight from one look to the next: below what was left."""

    def line(found: Findings) -> list[tuple[int, int]]:
        page = opened(chromium, replace(found, heap_course=course, survivors=left), tmp_path)
        assert "and what is left of mappings" in texts(page, "#heap")[0]
        path = page.run("document.querySelector('#time path.heap').getAttribute('d')")
        points = [map(float, point.split(",")) for point in path.split(" L")[1:]]
        return [(round(4 * x / 1000), round(5 * (190 - y) / 180)) for x, y in points]  # 5 MiB are 180 high

    course = HeapPoint(0, 0, 0, 0, 0), HeapPoint(SECOND, 5, 4 << 20, 9, 9 << 20)
    left = tuple(Survivors(at * SECOND // 4, at, (4 if at else 1) << 20, 1 << 20) for at in range(5))
    found = server_findings()
    one = found.processes[0]
    assert line(replace(found, processes=(one,))) == [(0, 1), (1, 4), (2, 4), (3, 4), (4, 5)]
    two = (one, replace(one, pid=one.pid + 1))
    assert line(replace(found, processes=two)) == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)], "what ended had some of it"


@needs_chromium
def test_tiles_begin_with_the_worst(chromium: Page, tmp_path: Path) -> None:
    found = server_findings()
    one = next(leak for leak in found.leaks if leak.kind != "reference")
    classes = ("reachable", "possible", "lost")
    page = opened(chromium, replace(found, leaks=tuple(replace(one, reachability=name) for name in classes)), tmp_path)
    assert texts(page, ".tile span:nth-child(2)")[:3] == ["lost", "possibly lost", "still reachable"]


@needs_chromium
def test_the_heap_over_time_has_its_peak(chromium: Page, tmp_path: Path) -> None:
    points = (0, 0, 0, 0, 0), (SECOND, 900, 3 << 20, 1000, 4 << 20), (2 * SECOND, 29, 464, 1300, 5 << 20)
    course = tuple(HeapPoint(*point) for point in points)
    page = opened(chromium, replace(server_findings(), heap_course=course), tmp_path)
    (said,) = texts(page, "#heap")
    assert "The peak of the heap is 3.0 MiB in 900 blocks, 1.0 s after the start" in said
    assert "1,300 blocks of 5.0 MiB in all were made, and all but 29 (464 bytes) were temporary" in said
    assert page.run("document.querySelectorAll('#time path.heap').length") == 1
    assert page.complaints == []


def test_the_policy_names_what_stands_in_the_page() -> None:
    out = io.StringIO()
    write_html(server_findings(), out)
    assert out.getvalue().count("<script") == 2
    assert "default-src 'none'" in out.getvalue()
    assert "http://" not in out.getvalue().replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in out.getvalue()


@needs_chromium
def test_what_is_lost_with_its_owner_is_a_tree_below_it(chromium: Page, tmp_path: Path) -> None:
    code, whole = made()
    page = opened(chromium, analyse(whole, code.symbols), tmp_path)
    assert page.complaints == []
    assert texts(page, "#leaks tr.entry td:first-child") == ["100", "30", "1,000", "20"]
    assert texts(page, "#shown") == ["4 entries: 1.2 KiB in 5 objects"]
    inside = texts(page, "#leaks tr.inside")[0]
    assert "and 1 block, 50 bytes below it" in inside
    (summary,) = texts(page, "#leaks tr.inside ul.below summary")
    assert summary.startswith("50 bytes in 1 block: ")
    assert "make_2 srv.c:2" in summary
    assert "make_2" in texts(page, "#leaks tr.inside ul.below details")[0].replace(summary, "")
    typed(page, "filter", "make_2")
    assert texts(page, "#leaks tr.entry td:first-child") == ["100"]


@needs_chromium
def test_where_the_owner_is_not_listed_it_stands_for_itself(chromium: Page, tmp_path: Path) -> None:
    findings = only(*made(), BELOW_AT, HELD_AT)
    page = opened(chromium, findings, tmp_path)
    assert sorted(texts(page, "#leaks tr.entry td:first-child")) == ["1,000", "50"]
    assert texts(page, "#leaks ul.below") == []


@needs_chromium
def test_what_holds_memory_is_a_tree_from_the_roots_down(chromium: Page, tmp_path: Path) -> None:
    table, made_by = Holder(1, "global", "cache.table", module="srv"), Holder(9, "block", type="struct item")
    many = tuple(DominatorNode(made_by, f"id{n}", 1, 1024, 1024, ()) for n in range(45))
    inner = DominatorNode(made_by, "item", 3, 2048, 2048 + 45 * 1024, many)
    root = DominatorNode(table, None, 0, 0, inner.retained, (inner,))
    page = opened(chromium, replace(server_findings(), dominators=(DominatorTree(7, (root,)),)), tmp_path)
    assert "What holds memory" in texts(page, "nav a")
    first, second = texts(page, "#holders summary")
    assert first == "47.0 KiB100.0 %cache.table [srv]"
    assert second == "47.0 KiB100.0 %struct item, in a block  2.0 KiB of them in 3 blocks  item"
    lines = texts(page, "#holders li.plain")
    assert lines[0] == "1.0 KiB2.1 %struct item, in a block  1 block  id0"
    assert (len(lines), lines[-1]) == (41, "5 more: 5.0 KiB")
    assert page.complaints == []


@needs_chromium
def test_without_a_tree_there_is_no_section_for_it(chromium: Page, tmp_path: Path) -> None:
    page = opened(chromium, replace(server_findings(), dominators=()), tmp_path)
    assert "What holds memory" not in texts(page, "nav a")


@needs_chromium
def test_on_a_narrow_screen_what_is_below_an_entry_is_in_sight(chromium: Page, tmp_path: Path) -> None:
    """The table is wider and scrolls; stacks and holders keep to the screen, wherever it is scrolled to."""
    page = opened(chromium, server_findings(), tmp_path)
    page.call("Emulation.setDeviceMetricsOverride", width=400, height=900, deviceScaleFactor=1, mobile=False)
    try:
        page.run("document.querySelector('#leaks tr.inside') || document.querySelector('#leaks tr.entry').click()")
        edges = "[...document.querySelectorAll('#leaks tr.inside > td > *')].map((e) => e.getBoundingClientRect())"
        for scrolled in (0, 60):
            page.run(f"document.querySelector('#leaks table').closest('.panel').scrollLeft = {scrolled}")
            assert page.run(f"{edges}.length") > 0
            assert page.run(f"{edges}.every((e) => e.left >= 0 && e.right <= 400)")
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")
