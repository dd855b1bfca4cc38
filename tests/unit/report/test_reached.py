"""Entries by what still points at their blocks: classes, owners, the verdict, and what fails a run."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from hand_made import Code, blocks, mapped, objects, process, records, snapshot
from jsonschema import validate
from test_json_report import SCHEMA

from tracer.analysis.analysis import analyse
from tracer.analysis.baseline import against_baseline
from tracer.analysis.options import AnalysisOptions
from tracer.analysis.policy import ANY_FINDING, parse_policy
from tracer.analysis.suppression import parse_suppressions
from tracer.analysis.verdict import has_findings
from tracer.model.findings import Findings, Leak
from tracer.model.reachability import (
    KIND_ALLOCATION,
    KIND_MAPPING,
    KIND_REFERENCE,
    REACH_RECORD,
    Reach,
    RootKind,
    Scan,
)
from tracer.model.snapshot import Loss, Snapshot
from tracer.report.json_report import DESCRIBED, document
from tracer.report.json_text import JsonText
from tracer.report.junit import write_junit
from tracer.report.junit_by_schema import write_junit_by_schema
from tracer.report.markdown import write_markdown
from tracer.report.sarif import write_sarif
from tracer.report.text import write_text
from tracer.report.text_options import TextOptions
from tracer.report.verdict_line import verdict

LOST_AT, BELOW_AT, HELD_AT, MIDDLE_AT, STACK_AT = 0x1000, 0x2000, 0x3000, 0x4000, 0x5000
SCAN = Scan(812, 1, None, 2_000_000, 4096, 5)


def reach(*rows: dict[str, int]) -> Any:
    return records(REACH_RECORD, rows, pid=812, generation=1, kind=KIND_ALLOCATION)


def made(**more: Any) -> tuple[Code, Snapshot]:
    """One block of each class; the lost one and the one below it come from different stacks, two share a stack."""
    code = Code()
    tops = [code.stack(n, code.frame(f"make_{n}", f"srv.c:{n}"), code.frame("main", "srv.c:99")) for n in range(1, 5)]
    rows = blocks(
        {"address": LOST_AT, "size": 100, "stack": tops[0]}, {"address": BELOW_AT, "size": 50, "stack": tops[1]},
        {"address": HELD_AT, "size": 1000, "stack": tops[0]}, {"address": MIDDLE_AT, "size": 30, "stack": tops[2]},
        {"address": STACK_AT, "size": 20, "stack": tops[3]},
    )  # fmt: skip
    classes = reach(
        {"address": LOST_AT, "reach": Reach.LOST},
        {"address": BELOW_AT, "reach": Reach.INDIRECT, "owner": LOST_AT},
        {"address": HELD_AT, "reach": Reach.REACHABLE, "root": 8, "root_kind": RootKind.GLOBAL},
        {"address": MIDDLE_AT, "reach": Reach.POSSIBLE, "root": 8, "root_kind": RootKind.MAPPING},
        {"address": STACK_AT, "reach": Reach.STACK, "root": 8, "root_kind": RootKind.REGISTER},
    )
    return code, snapshot(code, **{"allocations": rows, "reach": classes, "scans": (SCAN,)} | more)


def only(code: Code, whole: Snapshot, *addresses: int) -> Findings:
    kept = [row for row in range(len(whole.allocations)) if int(whole.allocations["address"][row]) in addresses]
    return analyse(replace(whole, allocations=whole.allocations[kept]), code.symbols)


def by_class(findings: Findings) -> dict[str | None, Leak]:
    return {leak.reachability: leak for leak in findings.leaks}


def text(findings: Findings, **options: Any) -> str:
    stream = io.StringIO()
    write_text(findings, stream, TextOptions(width=100, color=False, **options))
    return stream.getvalue()


def test_one_stack_with_blocks_of_two_classes_is_two_entries() -> None:
    code, whole = made()
    found = by_class(analyse(whole, code.symbols))
    assert {word: (leak.count, leak.bytes) for word, leak in found.items()} == {
        "lost": (1, 100), "indirect": (1, 50), "reachable": (1, 1000), "possible": (1, 30), "stack": (1, 20),
    }  # fmt: skip
    assert found["lost"].id == found["reachable"].id == found["indirect"].owner
    assert (found["lost"].below_count, found["lost"].below_bytes) == (1, 50)
    assert found["reachable"].reachability_reason == "held by a global"


def test_what_was_alive_at_an_exec_has_a_class_and_fails_no_run() -> None:
    code, whole = made(processes=(process(by_exec=True), process(generation=2)))
    found = analyse(whole, code.symbols)
    said = text(found)
    assert " ".join(said.split()).startswith(
        "refleak: clean; alive at exec: lost 150 bytes in 2 blocks, possibly lost 30 bytes in 1 block, still reachable "
        "1,020 bytes in 2 blocks still held at an exec: 1,020 bytes in 2 blocks (--show reachable,stack lists them) "
        "target"
    )
    assert "1,000 bytes" not in said
    assert "1,000 bytes" in text(found, show=("lost", "reachable"))
    assert "100 bytes alive at exec, lost: 1 block" in said
    again = text(analyse(replace(whole, scans=(SCAN, replace(SCAN, generation=2))), code.symbols))
    assert "memory   8.0 KiB read at the end for what points where; held 4.0 ms for it" in again
    assert "nothing that is not lost points at it; and 1 block, 50 bytes below it" in said
    assert not has_findings(found) and not ANY_FINDING.broken_by(found)


def test_what_is_held_at_the_end_of_a_program_is_summed_up_where_data_were_lost_too() -> None:
    code, whole = made(losses=(Loss("a process ran on", 1, "--hold 20", ("allocation",)),))
    found = analyse(whole, code.symbols)
    assert {leak.state for leak in found.leaks} == {"outstanding"}
    said = text(found)
    assert "still reachable: 1,000 bytes in 1 block, from globals (--show reachable lists it)" in said
    assert "1,000 bytes still reachable" not in said and "100 bytes lost" in said
    assert "1,000 bytes still reachable" in text(found, show=("lost", "reachable"))
    attached = text(analyse(replace(whole, mode="attached", target_ended=False), code.symbols))
    assert "1,000 bytes still reachable" in attached


def written(write: Any, found: Findings, *options: Any) -> str:
    stream = io.StringIO()
    write(found, stream, *options)
    return stream.getvalue()


def test_no_format_for_people_lists_what_is_held_unless_asked_to() -> None:
    """A clean program had a table of leaks in Markdown, a note in code scanning and a skipped case for each entry."""
    code, whole = made()
    clean = only(code, whole, HELD_AT, STACK_AT)
    held = "still reachable: 1,000 bytes in 1 block, from globals (--show reachable lists it)"
    said = written(write_markdown, clean)
    assert "| leaked |" not in said and "</details>" not in said
    assert held in said
    asked = written(write_markdown, clean, 10, ("reachable",))
    assert "| still reachable |" in asked and asked.count("</details>") == 1
    run = json.loads(written(write_sarif, clean))["runs"][0]
    assert (run["results"], run["properties"]["held"][0]) == ([], held)
    run = json.loads(written(write_sarif, clean, None, ("reachable", "stack")))["runs"][0]
    assert [result["level"] for result in run["results"]] == ["note", "note"]
    for write in (write_junit, write_junit_by_schema):
        cases = written(write, clean)
        assert cases.count("<testcase") == 2 and "<skipped" not in cases and held in cases
        assert written(write, clean, None, ("reachable",)).count("<skipped") == 1


def test_what_hangs_below_an_entry_is_said_there_in_all_formats_for_people() -> None:
    code, whole = made()
    found = analyse(whole, code.symbols)
    run = json.loads(written(write_sarif, found))["runs"][0]
    assert [result["properties"]["reachability"] for result in run["results"]] == ["lost", "possible"]
    assert "and 1 block, 50 bytes below it" in run["results"][0]["message"]["text"]
    assert "and 1 block, 50 bytes below it" in written(write_junit, found)
    assert "and 1 block, 50 bytes below it" in written(write_markdown, found)


@pytest.mark.parametrize("first", [0, 1])
def test_a_pool_and_its_first_block_begin_at_one_address(first: int) -> None:
    """The pool is held by its second block; what the first one held hangs below that."""
    code = Code()
    made_by = [code.stack(n, code.frame(f"make_{n}")) for n in range(1, 4)]
    rows = blocks(
        {"address": LOST_AT, "size": 400, "stack": made_by[0], "site": 1},
        {"address": LOST_AT, "size": 100, "stack": made_by[1], "site": 2},
        {"address": BELOW_AT, "size": 50, "stack": made_by[2], "site": 1},
    )  # fmt: skip
    classes = reach(
        {"address": LOST_AT, "reach": Reach.REACHABLE, "root_kind": RootKind.GLOBAL, "site": 1},
        {"address": LOST_AT, "reach": Reach.LOST, "site": 2},
        {"address": BELOW_AT, "reach": Reach.INDIRECT, "owner": LOST_AT, "site": 1},
    )
    order = [first, 1 - first, 2]
    whole = snapshot(code, allocations=rows[order], reach=classes[order[::-1]], scans=(SCAN,))
    found = by_class(analyse(whole, code.symbols))
    assert {word: leak.bytes for word, leak in found.items()} == {"reachable": 400, "lost": 100, "indirect": 50}
    assert (found["indirect"].owner, found["lost"].below_bytes) == (found["lost"].id, 50)


def test_verdict_and_lines() -> None:
    code, whole = made()
    said = text(analyse(whole, code.symbols))
    assert said.splitlines()[:3] == [
        "refleak: LEAK: lost 150 bytes in 2 blocks, possibly lost 30 bytes in 1 block",
        "         still reachable: 1,000 bytes in 1 block, from globals (--show reachable lists it)",
        "         held by the last stack: 20 bytes in 1 block (--show stack lists it)",
    ]
    assert "nothing that is not lost points at it; and 1 block, 50 bytes below it" in said
    assert "still reachable: 1 block" not in said
    assert "4.0 KiB read at the end for what points where; held 2.0 ms for it" in said
    assert "1,000 bytes still reachable: 1 block" in text(analyse(whole, code.symbols), show=("reachable",))


@pytest.mark.parametrize(
    ("addresses", "line", "fails"),
    [
        ((HELD_AT,), "refleak: clean: nothing lost", False),
        ((STACK_AT,), "refleak: clean: nothing lost", False),
        ((MIDDLE_AT,), "refleak: POSSIBLE LEAK: possibly lost 30 bytes in 1 block", True),
        ((LOST_AT,), "refleak: LEAK: lost 100 bytes in 1 block", True),
        ((), "refleak: clean", False),
    ],
)
def test_what_is_no_leak(addresses: tuple[int, ...], line: str, fails: bool) -> None:
    findings = only(*made(), *addresses)
    assert verdict(findings).text == line
    assert has_findings(findings) == bool(ANY_FINDING.broken_by(findings)) == fails


@pytest.mark.parametrize(
    ("policy", "broken"),
    [
        ("lost", ("2 entries lost",)), ("possible", ("1 entry possible",)), ("reachable", ("1 entry reachable",)),
        ("stack", ("1 entry stack",)), ("leaks", ("3 entries leaked",)), ("bytes>179", ("bytes 180 > 179",)),
        ("bytes>180", ()), ("count>3", ()),
    ],
)  # fmt: skip
def test_policies(policy: str, broken: tuple[str, ...]) -> None:
    code, whole = made()
    assert parse_policy(policy).broken_by(analyse(whole, code.symbols)) == broken


def test_what_hangs_below_a_suppressed_leak_is_suppressed() -> None:
    code, whole = made()
    rules = tuple(parse_suppressions("leak:make_1", "mine"))
    findings = analyse(whole, code.symbols, AnalysisOptions(suppressions=rules))
    assert {leak.reachability for leak in findings.suppressed} == {"lost", "indirect", "reachable"}
    assert len({leak.suppressed_by for leak in findings.suppressed}) == 1


def test_where_the_owner_is_not_listed_an_entry_stands_for_itself() -> None:
    (leak,) = only(*made(), BELOW_AT).leaks
    assert (leak.reachability, leak.owner) == ("indirect", None)
    assert "50 bytes lost with its owner: 1 block" in text(only(*made(), BELOW_AT))


def test_reachable_blocks_are_no_new_leaks() -> None:
    code, whole = made()
    nothing, findings = only(code, whole), analyse(whole, code.symbols)
    kept = against_baseline(findings, nothing, "old").leaks
    assert {leak.reachability for leak in kept} == {"lost", "indirect", "possible"}
    before = only(code, whole, HELD_AT)
    assert "lost" in {leak.reachability for leak in against_baseline(findings, before, "old").leaks}


def test_a_counted_object_is_a_leak_wherever_it_is_held() -> None:
    code, whole = made()
    born = code.stack(9, code.frame("dso__new", "dso.c:1"), code.frame("main", "srv.c:99"))
    rows = objects({"address": HELD_AT + 8, "object": HELD_AT, "stack": born, "count": 2})
    classes = reach({"address": HELD_AT + 8, "kind": KIND_REFERENCE, "reach": Reach.REACHABLE, "root_kind": 1})
    findings = analyse(replace(whole, objects=rows, reach=classes, allocations=whole.allocations[:0]), code.symbols)
    (leak,) = findings.leaked
    assert (leak.kind, leak.reachability) == ("reference", "reachable")
    assert "still reachable: held by a global" in text(findings)


def test_a_mapping() -> None:
    code, whole = made()
    at = code.stack(9, code.frame("grow", "srv.c:7"), code.frame("main", "srv.c:99"))
    rows = mapped({"start": 0x10000, "length": 4096, "stack": at})
    classes = reach({"address": 0x10000, "kind": KIND_MAPPING, "reach": Reach.INDIRECT, "owner": LOST_AT})
    findings = analyse(replace(whole, mapped=rows, reach=classes, allocations=whole.allocations[:1]), code.symbols)
    assert {(leak.kind, leak.reachability) for leak in findings.leaks} == {
        ("mapping", "indirect"), ("allocation", None),
    }  # fmt: skip


def test_where_it_was_not_looked_into_all_is_as_before() -> None:
    code, whole = made(reach=reach(), scans=(Scan(812, 1, "its last call was not seen"),))
    findings = analyse(whole, code.symbols)
    assert {leak.reachability for leak in findings.leaks} == {None}
    assert {leak.reachability_reason for leak in findings.leaks} == {"its last call was not seen"}
    assert verdict(findings).text == "refleak: LEAK: 1.2 KiB in 5 blocks"
    assert "not looked into, so that leaked means not freed: its last call was not seen" in text(findings)


def test_memory_of_a_killed_process_is_not_judged() -> None:
    """It was called a leak: all that a server holds, where its test ends it by SIGTERM."""
    code, whole = made(reach=reach(), scans=(Scan(812, 1, "it was killed by SIGTERM"),))
    whole = replace(whole, processes=(process(signal=15, exit_code=None),))
    findings = analyse(whole, code.symbols)
    assert {leak.state for leak in findings.leaks} == {"outstanding"} and not has_findings(findings)
    said = "refleak: outstanding, not judged: 1.2 KiB in 5 blocks; but it was killed by SIGTERM"
    assert verdict(findings).text == said
    words = " ".join(text(findings).split())
    assert "not looked into, so that what was alive is not judged: it was killed by SIGTERM; to have it judged" in words
    read = replace(whole, scans=(Scan(812, 1),))
    assert {leak.state for leak in analyse(read, code.symbols).leaks} == {"leaked"}, "as of one that aborts"
    child = replace(whole, processes=(process(811), process(812, parent=811, signal=9, exit_code=None)))
    assert verdict(analyse(child, code.symbols)).text.endswith("; but its child 812 was killed by SIGKILL")


def test_for_how_long_it_was_held_at_its_end_makes_nothing_older() -> None:
    def ages(held_ns: int) -> list[int]:
        code, whole = made(reach=reach(), scans=(Scan(812, 1, held_ns=held_ns),))
        return [one.age_ns for leak in analyse(whole, code.symbols).leaks for one in leak.instances]

    assert min(ages(0)) > 1000
    assert [age + 1000 for age in ages(1000)] == ages(0)


def test_lost_data_are_not_forgotten() -> None:
    code, whole = made(losses=(Loss("event not kept", 3, "--ring-size", ("mapping",)),))
    assert verdict(analyse(whole, code.symbols)).text == (
        "refleak: LEAK, as far as seen: lost 150 bytes in 2 blocks, possibly lost 30 bytes in 1 block;"
        " but data were lost"
    )


def test_json_follows_its_schema() -> None:
    code, whole = made()
    stream = io.StringIO()
    JsonText(DESCRIBED).write(document(analyse(whole, code.symbols)), stream)
    report = json.loads(stream.getvalue())
    validate(report, SCHEMA)
    assert report["scans"] == [
        {"pid": 812, "looked_into": True, "reason": None, "held_ns": 2_000_000, "bytes_read": 4096, "blocks": 5,
         "resident": None, "why_running": None, "passes": 1}
    ]
    of = {leak["reachability"]: leak for leak in report["leaks"]}
    assert of["lost"]["below"] == {"count": 1, "bytes": 50}
    assert of["indirect"]["owner"] == of["lost"]["id"]
