"""What came and went between checkpoints, from hand-made totals."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
from hand_made import DSO, MALLOC, MMAP, SECOND, Code, blocks, mapped, objects, records, snapshot

from tracer.analysis import analyse
from tracer.model.findings import Findings
from tracer.model.periods import Checkpoint
from tracer.model.records import TOTALS_RECORD
from tracer.model.statistics import CHECKPOINT_TOTALS, LIFETIME, BalancedStatistics
from tracer.report import TextOptions, write_json, write_text
from tracer.report.markdown import write_markdown

SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "report.schema.json").read_text())


def findings() -> Findings:
    """Two stacks of one entry, a mapping and a counted type; checkpoints at 10 and 20 s of 61."""
    code = Code()
    main = code.frame("main", "a.c:9")
    one, other = (code.stack(i, code.frame("push", "q.c:1"), main) for i in (1, 2))
    arena = code.stack(3, code.frame("arena__map", "arena.c:12"), main)
    new = code.stack(4, code.frame("dso__new", "dso.c:88"), main)
    snap = snapshot(
        code,
        checkpoints=(Checkpoint(1, 10 * SECOND), Checkpoint(2, 20 * SECOND)),
        checkpoint_totals=records(
            CHECKPOINT_TOTALS,
            [
                {"checkpoint": 1, "stack": one, "made": 5, "freed": 2, "site": MALLOC},
                {"checkpoint": 2, "stack": one, "made": 5, "freed": 4, "site": MALLOC},
                {"checkpoint": 2, "stack": other, "made": 3, "site": MALLOC},
                {"checkpoint": 2, "stack": new, "type": DSO, "made": 7, "freed": 6},
            ],
        ),
        totals=records(
            TOTALS_RECORD,
            [
                {"stack": one, "made": 6, "freed": 5, "site": MALLOC},
                {"stack": other, "made": 3, "freed": 2, "site": MALLOC},
                {"stack": arena, "made": 2, "site": MMAP}, {"stack": 9},
            ],
        ),
        allocations=blocks(
            {"stack": one, "time_ns": 10 * SECOND, "size": 8}, {"stack": other, "time_ns": 10 * SECOND + 1, "size": 16}
        ),
        mapped=mapped({"stack": arena, "time_ns": 50 * SECOND, "length": 4096}),
        objects=objects({"stack": new, "time_ns": 15 * SECOND}),
        balanced=BalancedStatistics(
            lifetimes=records(LIFETIME, [{"type": DSO, "create_stack": new, "count": 8, "min_ns": 1, "max_ns": 2}])
        ),
    )  # fmt: skip
    return analyse(snap, code.symbols)


def test_each_period_has_what_was_made_and_freed_in_it() -> None:
    found = findings().periods
    times = [(p.number, p.from_ns // SECOND, p.until_ns // SECOND) for p in found]
    assert times == [(1, 0, 10), (2, 10, 20), (3, 20, 61)]
    rows = [
        [
            (row.kind, row.type, row.stack[1].function, row.made, row.freed, row.outstanding, row.outstanding_bytes)
            for row in period.rows
        ]
        for period in found
    ]
    assert rows == [
        [("allocation", "malloc", "push", 5, 2, 1, 8)],
        [("allocation", "malloc", "push", 3, 2, 1, 16), ("reference", "dso", "dso__new", 7, 6, 1, None)],
        [
            ("mapping", "mmap", "arena__map", 2, None, 1, 4096), ("reference", "dso", "dso__new", 2, 2, 0, None),
            ("allocation", "malloc", "push", 1, 3, 0, 0),
        ],
    ]  # fmt: skip


def test_the_rows_have_the_ids_of_the_entries() -> None:
    found = findings()
    assert {row.id for period in found.periods for row in period.rows} == {leak.id for leak in found.leaks}


def test_without_checkpoints_there_are_no_periods() -> None:
    code = Code()
    assert analyse(snapshot(code, allocations=blocks({"stack": 1})), code.symbols).periods == ()


def test_the_formats_show_them() -> None:
    stream = io.StringIO()
    write_text(findings(), stream, TextOptions(width=80, color=False))
    text = stream.getvalue()
    section = text[text.index("between checkpoints") :].splitlines()
    assert section[:4] == [
        "between checkpoints",
        "  from the start to checkpoint 1 at 10.0 s: 5 made, 2 freed; of those made 1",
        "    left (8 bytes)",
        "        made    freed     left",
    ]
    assert "           7        6        1  dso from dso__new (dso.c:88)" in section
    assert "           2        ?        1  arena__map (arena.c:12)" in section
    stream = io.StringIO()
    write_json(findings(), stream)
    document = json.loads(stream.getvalue())
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert [len(period["entries"]) for period in document["periods"]] == [1, 2, 3]
    stream = io.StringIO()
    write_markdown(replace(findings(), leaks=()), stream)
    assert "| 2 |  | 1 | 4,096 |" in stream.getvalue()


def test_names_of_a_narrow_table_are_not_broken() -> None:
    """At 40 columns eight were left for a name, which was cut wherever that was: "net::htt"."""
    code = Code()
    stack = code.stack(1, code.frame("net::http::remember_session(net::http::Conn*)", "a.cc:17"), code.frame("main"))
    found = analyse(
        snapshot(
            code, checkpoints=(Checkpoint(1, 10 * SECOND),),
            checkpoint_totals=records(
                CHECKPOINT_TOTALS, [{"checkpoint": 1, "stack": stack, "made": 5, "site": MALLOC}]
            ),
            totals=records(TOTALS_RECORD, [{"stack": stack, "made": 5, "site": MALLOC}]),
        ),
        code.symbols,
    )  # fmt: skip
    for width, said in [(40, "    http::remember_session (a.cc:17)"), (80, "net::http::remember_session (a.cc:17)")]:
        stream = io.StringIO()
        write_text(found, stream, TextOptions(width=width))
        table = stream.getvalue().partition("between checkpoints")[2]
        assert any(line.endswith(said) for line in table.splitlines()), table
        assert all(len(line) <= width for line in table.splitlines())
