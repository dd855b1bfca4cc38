"""Who holds what: from records to the lines of a report."""

from __future__ import annotations

import io
import json
from dataclasses import replace

from hand_made import Code, blocks, objects, records, snapshot
from jsonschema import validate
from test_json_report import SCHEMA

from tracer.analysis.analysis import analyse
from tracer.model.findings import Findings, Holder
from tracer.model.frames import Frame
from tracer.model.holders import HOLDER_RECORD, HolderKind, HolderName
from tracer.model.reachability import KIND_ALLOCATION, KIND_REFERENCE, REACH_RECORD, Reach, RootKind, Scan
from tracer.report.holder_words import held_by
from tracer.report.html_document import html_document
from tracer.report.json_report import DESCRIBED, document
from tracer.report.json_text import JsonText
from tracer.report.text import write_text
from tracer.report.text_options import TextOptions


def reported(code: Code, maker: int) -> Findings:
    top = code.stack(1, code.frame("make_1", "srv.c:1"), code.frame("main", "srv.c:9"))
    made = blocks(*({"address": 0x1000 * n, "size": 80, "stack": top} for n in (1, 2)))
    known = {"reach": Reach.REACHABLE, "root_kind": RootKind.GLOBAL}
    reach = [{"address": 0x1000 * n, "kind": KIND_ALLOCATION, **known} for n in (1, 2)]
    reach.append({"address": 0x1000, "kind": KIND_REFERENCE, "holders": 2, **known})
    block = {"kind": HolderKind.BLOCK, "place": maker, "offset": 16, "count": 1, "name": 1}
    rows = [
        {"target_kind": KIND_ALLOCATION, **block}, {"target_kind": KIND_REFERENCE, **block},
        {"target_kind": KIND_ALLOCATION, "kind": HolderKind.GLOBAL, "place": 1 << 48 | 0x40, "offset": -1, "count": 41},
    ]  # fmt: skip
    whole = snapshot(
        code, allocations=made, objects=objects({"address": 0x1000, "stack": top, "count": 2}),
        reach=records(REACH_RECORD, reach, pid=812, generation=1), scans=(Scan(812, 1),),
        holders=records(HOLDER_RECORD, rows, target=0x1000, pid=812, generation=1),
        holder_names=(HolderName("struct owner.second", "struct owner", "second", "srv"),),
    )
    return analyse(whole, code.symbols)


def test_entries_say_who_holds_them() -> None:
    code = Code()
    findings = reported(code, code.stack(2, code.frame("make_2", "srv.c:1"), code.frame("main", "srv.c:9")))
    reference, allocation = findings.leaks
    assert [(h.count, h.kind, h.name, h.offset) for h in allocation.holders or ()] == [
        (41, "global", None, 0x40), (1, "block", "struct owner.second", 16),
    ]  # fmt: skip
    assert reference.holders_and_count == "count 2, one holder (owner.second): one reference has no holder"
    stream = io.StringIO()
    write_text(findings, stream, TextOptions(width=100, color=False, show=("reachable",)))
    assert "    held by struct owner.second, in a block from make_2 srv.c:1\n" in stream.getvalue()
    assert "      41  a global, " in stream.getvalue()
    JsonText(DESCRIBED).write(document(findings), text := io.StringIO())
    validate(json.loads(text.getvalue()), SCHEMA)
    assert html_document(findings)["leaks"][0]["heldBy"] == [  # type: ignore[index]
        "count 2, one holder (owner.second): one reference has no holder",
        "held by struct owner.second, in a block from make_2 srv.c:1: 1",
    ]


def test_a_block_is_from_who_made_it() -> None:
    """Where libc alone has debug symbols, it was "a block from __libc_start_call_main"; elsewhere from a wrapper."""
    code = Code()
    names = ("malloc", "Perl_safesysmalloc", "perl_alloc", "main")
    start = code.frame("__libc_start_call_main", "libc_start_call_main.h:58")
    findings = reported(code, code.stack(2, *(code.frame(name) for name in names), start))
    (said,) = (words for words in held_by(findings.leaks[1].holders) if "owner.second" in words)
    assert said == "held by struct owner.second, in a block from perl_alloc [srv]: 1"


def test_where_nobody_looked_there_are_no_holders() -> None:
    code = Code()
    top = code.stack(1, code.frame("make", "srv.c:1"))
    whole = snapshot(code, allocations=blocks({"address": 0x1000, "size": 80, "stack": top}))
    (leak,) = analyse(whole, code.symbols).leaks
    assert leak.holders is None
    nobody = records(HOLDER_RECORD, [{"target": 0x1000, "target_kind": KIND_ALLOCATION}], pid=812, generation=1)
    looked = replace(whole, holders=nobody)
    (leak,) = analyse(looked, code.symbols).leaks
    assert leak.holders == ()


def test_holders_that_no_word_tells_apart_have_one_line() -> None:
    """A block from one function, called from three places, was listed three times."""
    stacks = [(Frame("make", "srv", file="srv.c", line=7), Frame(caller, "srv")) for caller in ("one", "two", "one")]
    holders = tuple(
        Holder(count, "block", offset=offset, stack=stack)
        for count, offset, stack in zip((5, 2, 1), (8, 8, 16), stacks, strict=True)
    )
    block = "held by a block from make srv.c:7"
    assert held_by(holders) == [f"{block} + 0x8: 7", f"{block} + 0x10: 1"]


def test_a_mapping_is_named_by_the_program_and_not_by_the_start_of_libc() -> None:
    """Where libc alone has debug symbols, python3's arenas were mapped at __libc_start_call_main."""
    stack = (
        Frame("mmap", "libc.so.6", "/lib/libc.so.6"), Frame(None, "srv", "/usr/bin/srv", address=0x62D099),
        Frame("__libc_start_call_main", "libc.so.6", "/lib/libc.so.6", file="/csu/libc_start_call_main.h", line=58),
    )  # fmt: skip
    holder = Holder(1, "mapping", stack=stack, own_frame=1)
    assert held_by((holder,)) == ["held by memory mapped at srv+0x62d099: 1"]
