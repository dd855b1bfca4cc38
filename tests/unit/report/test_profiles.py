"""Profiles, as the profilers' own tools read them."""

from __future__ import annotations

import gzip
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from built_program import build
from hand_made import BINARIES, Code, blocks, process, server, snapshot
from hypothesis import given
from hypothesis import strategies as st
from profile_readers import go_pprof, go_pprof_names, go_pprof_tags, google_pprof, needs_go, needs_google_pprof

from tracer.analysis import AnalysisOptions, analyse
from tracer.elf.image import PF_X, PT_LOAD, Image
from tracer.elf.symbol_table import read_symbol_table
from tracer.model.findings import CodeRange, Findings, FreedAt, Instance, Leak
from tracer.model.frames import Frame
from tracer.model.snapshot import Mapping
from tracer.report.code_layout import CodeLayout, physical
from tracer.report.entry_sentence import error_sentence
from tracer.report.folded import write_folded, write_folded_objects
from tracer.report.gperftools import write_heap_profile
from tracer.report.pprof import profile, write_pprof
from tracer.report.protobuf_wire import Message, varint
from tracer.report.speedscope import write_speedscope
from tracer.report.verdict_line import verdict

SPEEDSCOPE = json.loads((Path(__file__).parents[1] / "schemas" / "speedscope.schema.json").read_text())


def findings(**more: object) -> Findings:
    snap, code = server()
    return replace(analyse(snap, code.symbols), **more)  # type: ignore[arg-type]


def nothing() -> Findings:
    return analyse(snapshot(), {})


def test_varints_are_those_of_the_documentation() -> None:
    assert varint(0) == b"\0"
    assert varint(150) == b"\x96\x01"
    assert varint(-1) == b"\xff" * 9 + b"\x01"


@given(st.integers(0, (1 << 64) - 1))
def test_a_varint_reads_back(number: int) -> None:
    assert sum((byte & 0x7F) << 7 * index for index, byte in enumerate(varint(number))) == number
    assert [byte >> 7 for byte in varint(number)][-1] == 0


def test_a_message_has_tags_and_lengths() -> None:
    message = Message()
    message.number(1, 150)
    message.number(2, 0)
    message.block(2, b"testing")
    message.numbers(4, [3, 270, 86942])
    assert message.data == bytes.fromhex("089601" "120774657374696e67" "2206038e029ea705")


def pprof_file(found: Findings, directory: Path) -> Path:
    path = directory / "leaks.pb.gz"
    with open(path, "wb") as stream:
        write_pprof(found, stream)
    return path


def test_the_profile_is_compressed_without_a_time() -> None:
    out = io.BytesIO()
    write_pprof(findings(), out)
    assert out.getvalue()[4:8] == b"\0" * 4
    assert gzip.decompress(out.getvalue()) == profile(findings())


@needs_go
def test_pprof_reads_what_is_in_use_and_what_was_allocated(tmp_path: Path) -> None:
    first = findings().leaks[0]
    freed = (FreedAt(first.stack, 5, 500), FreedAt((), 3, 30))
    read = go_pprof(pprof_file(findings(freed=freed), tmp_path))
    assert read.types == (
        "inuse_objects/count", "inuse_space/bytes", "alloc_objects/count", "alloc_space/bytes", "free_objects/count",
        "free_space/bytes",
    )  # fmt: skip
    assert [values for values, _ in read.samples] == [
        (2, 0, 2, 0, 0, 0), (7, 28672, 7, 28672, 0, 0), (1, 72, 1, 72, 0, 0), (1, 13, 1, 13, 0, 0),
        (1, 1 << 20, 1, 1 << 20, 0, 0), (0, 0, 5, 500, 5, 500), (0, 0, 3, 30, 3, 30),
    ]  # fmt: skip
    assert all(values[0] or not values[1] for values, _ in read.samples)
    assert all(values[2] or not values[3] for values, _ in read.samples)


@needs_go
def test_pprof_reads_names_lines_inlining_and_mappings(tmp_path: Path) -> None:
    code = Code()
    inlined = Frame("inner", "srv", "/usr/bin/srv", "aa11", "in.h", 7, True, 0x2010)
    outer = code.frame("outer", "o.c:9")
    code.symbols[outer] = (inlined, replace(code.symbols[outer][0], address=0x2010))
    stack = code.stack(1, code.frame("malloc", binary=2), outer, code.frame(None, why_unknown="stripped"))
    mappings = (Mapping(812, 1, 0x7F0000, 0x7F4000, 0, 1, True, 0, link_address=0x1000),)
    snap = snapshot(code, allocations=blocks({"size": 8, "stack": stack}), mappings=mappings)
    read = go_pprof(pprof_file(analyse(snap, code.symbols), tmp_path))
    ((_, locations),) = read.samples
    malloc, outers, unknown = (read.locations[number] for number in locations)
    assert malloc[1].split() == ["malloc", ":0"]
    assert [line.split() for line in outers[1:]] == [["inner", "in.h:7"], ["outer", "o.c:9"]]
    assert unknown[1].split() == ["srv+0x1030", ":0"]
    assert unknown[0].startswith("0x101000001")
    main_program, libc = read.mappings[0], read.mappings[1]
    assert main_program == "1: 0x101000001000/0x101000005000/0x0 /usr/bin/srv aa11 [FN][FL][LN][IN]"
    assert "libc.so.6 bb22" in libc


def test_pprof_begins_with_the_verdict() -> None:
    """`go tool pprof` prints it above all: "nothing lost", said of the data, stood above what leaked."""
    for found in (findings(), nothing()):
        assert verdict(found).text.encode() in profile(found)
        assert all(f"not complete: lost {loss.count}".encode() in profile(found) for loss in found.losses)


def test_pprof_has_errors_as_comments() -> None:
    found = findings()
    assert found.errors
    assert all(f"error: {error_sentence(error)}".encode() in profile(found) for error in found.errors)
    assert b"error: " not in profile(nothing())


@needs_go
def test_pprof_leaves_names_as_they_are(tmp_path: Path) -> None:
    names = ("<module>", "<T as core::ops::Drop>::drop", "(anonymous namespace)::Pool<int>::visit(int)", "f.<locals>.g")
    code = Code()
    stack = code.stack(1, code.frame("malloc", binary=2), *map(code.frame, names), code.frame("main"))
    snap = snapshot(code, allocations=blocks({"size": 8, "stack": stack}))
    path = pprof_file(analyse(snap, code.symbols), tmp_path)
    assert sorted(go_pprof_names(path)) == sorted(("malloc", *names, "main"))


@needs_go
def test_pprof_counts_objects_that_ended(tmp_path: Path) -> None:
    leak = replace(findings().leaks[0], made=9, freed=7)
    read = go_pprof(pprof_file(replace(findings(), leaks=(leak,)), tmp_path))
    assert [values for values, _ in read.samples] == [(2, 0, 9, 0, 7, 0)]


@needs_go
def test_pprof_selects_by_type_class_process_and_thread(tmp_path: Path) -> None:
    pages = replace(findings().leaks[1], reachability="lost")
    threads = tuple(Instance(address, 4096, None, 0, 812 + address // 4) for address in range(7))
    other = replace(pages, pid=813, reachability="reachable", instances=threads)
    path = pprof_file(replace(two_servers(), leaks=(pages, other)), tmp_path)
    tags = go_pprof_tags(path)
    assert tags["kind"] == {"allocation"}
    assert tags["type"] == {"malloc"}
    assert tags["class"] == {"lost", "reachable"}
    assert tags["process"] == {"srv (pid 812)", "srv (pid 813)"}
    assert tags["thread"] == {"812"}


@needs_go
def test_an_empty_profile_is_one(tmp_path: Path) -> None:
    assert go_pprof(pprof_file(nothing(), tmp_path)).samples == ()


def frame(address: int, path: str = "/bin/a", **more: object) -> Frame:
    return Frame("f", "a", path, None, address=address, **more)  # type: ignore[arg-type]


def test_binaries_do_not_overlap_and_fixed_ones_stay() -> None:
    code = [
        CodeRange("/bin/a", None, 0x401000, 0x402000, 0x1000, fixed=True),
        CodeRange("/lib/b.so", None, 0x1000, 0x3000, 0x1000, fixed=False),
        CodeRange("/lib/c.so", None, 0x1000, 0x2000, 0, fixed=False),
        CodeRange("/lib/unused.so", None, 0, 0x1000, 0, fixed=False),
    ]
    frames = [frame(0x401234), frame(0x1234, "/lib/b.so"), frame(0x1234, "/lib/c.so"), Frame(None, address=0x7F00)]
    layout = CodeLayout(code, frames)
    assert [layout.address(f) for f in frames] == [0x401234, 0x101000001234, 0x102000001234, 0x7F00]
    assert [(r.path, r.start, r.file_offset) for r in layout.ranges] == [
        ("/bin/a", 0x401000, 0x1000), ("/lib/b.so", 0x101000001000, 0x1000), ("/lib/c.so", 0x102000001000, 0),
    ]  # fmt: skip
    assert layout.range_of(frames[-1]) is None


def test_two_fixed_programs_get_places_of_their_own() -> None:
    code = [CodeRange(path, None, 0x401000, 0x402000, 0x1000, fixed=True) for path in ("/bin/a", "/bin/b")]
    layout = CodeLayout(code, [frame(0x401500), frame(0x401500, "/bin/b")])
    assert [layout.address(frame(0x401500, path)) for path in ("/bin/a", "/bin/b")] == [0x401500, 0x101000401500]


def test_an_address_outside_of_all_mappings_has_a_page_of_unknown_origin() -> None:
    layout = CodeLayout([CodeRange("/bin/a", None, 0x1000, 0x2000, 0, fixed=False)], [frame(0x1800), frame(0x9876)])
    assert [(r.start & 0xFFFFF, r.file_offset) for r in layout.ranges] == [(0x1000, 0), (0x9000, None)]


def test_inlined_functions_share_their_callers_address() -> None:
    inner, outer, main = frame(8, inlined=True), frame(8), frame(16)
    assert physical((inner, outer, main)) == [(inner, outer), (main,)]
    assert physical((inner, main)) == [(inner,), (main,)]
    assert physical(()) == []


SOURCE = """
#include <stdlib.h>
__attribute__((noinline)) void *make_one(void) { return malloc(11); }
__attribute__((noinline)) void *make_way(void) { void *p = make_one(); __asm__(""); return p; }
int main(void) { return make_way() == 0; }
"""
LINKS = {"pie": ("-pie",), "fixed": ("-no-pie",), "lld": ("-fuse-ld=lld", "-pie")}


@needs_google_pprof
@pytest.mark.parametrize("link", LINKS)
def test_gperftools_finds_the_functions_itself(link: str, tmp_path: Path) -> None:
    """lld gives code another offset in the file than when linked, which the mapping must tell."""
    if link == "lld" and shutil.which("ld.lld") is None:
        pytest.skip("needs lld (Debian: lld)")
    program = build(tmp_path, SOURCE, "-O1", *LINKS[link])
    with Image.open(program) as image:
        table = read_symbol_table(image)
        starts = [table.find(name)[0].address for name in ("make_one", "make_way", "main")]
        (code,) = [s for s in image.segments if s.type == PT_LOAD and s.flags & PF_X]
    assert (code.link_address != code.file_offset) == (link != "pie")
    start = code.link_address & ~0xFFF
    range_ = CodeRange(
        str(program), None, start, code.link_address + code.memory_size, code.file_offset & ~0xFFF, link == "fixed"
    )
    stack = tuple(Frame(None, "p", str(program), address=start + 4) for start in starts)
    leak = Leak("id", "allocation", "malloc", 1, "leaked", 3, 33, stack, True, "complete")
    path = tmp_path / "leaks.heap"
    with open(path, "w", encoding="utf-8") as stream:
        write_heap_profile(replace(nothing(), leaks=(leak,), code=(range_,)), stream)
    rows = [line.split() for line in google_pprof(program, path, "--inuse_objects").splitlines()[-3:]]
    assert sorted((row[-1], row[0], row[3]) for row in rows) == [
        ("main", "0", "3"), ("make_one", "3", "3"), ("make_way", "0", "3"),
    ]  # fmt: skip


@needs_google_pprof
def test_gperftools_reads_the_totals(tmp_path: Path) -> None:
    path = tmp_path / "leaks.heap"
    with open(path, "w", encoding="utf-8") as stream:
        write_heap_profile(findings(freed=(FreedAt((), 3, 30),)), stream)
    sums = {
        option: google_pprof(Path("/bin/true"), path, f"--{option}").splitlines()[0]
        for option in ("inuse_objects", "alloc_objects")
    }
    assert sums == {"inuse_objects": "Total: 12 objects", "alloc_objects": "Total: 15 objects"}


def test_a_mapping_of_unknown_origin_has_no_name_in_the_heap_profile() -> None:
    out = io.StringIO()
    write_heap_profile(findings(), out)
    assert all(binary.path not in out.getvalue() for binary in BINARIES)


def text_of(write: object, found: Findings) -> str:
    out = io.StringIO()
    write(found, out)  # type: ignore[operator]
    return out.getvalue()


PAGES = "srv (pid 812);_start;libc.so.6+0x1020;main;serve;handle_request;parse_body;malloc"


def two_servers() -> Findings:
    found = findings()
    return replace(found, processes=(found.processes[0], replace(found.processes[0], pid=813)))


def test_folded_stacks_are_outermost_first() -> None:
    assert text_of(write_folded, two_servers()).splitlines() == [
        "srv (pid 812);_start;libc.so.6+0x1020;main;arena__map;mmap 1048576",
        "srv (pid 812);_start;libc.so.6+0x1020;main;dso__set_name;strdup;malloc 13",
        f"{PAGES} 28672",
        "srv (pid 813);libstdc++.so.6+0x10c0;malloc 72",
    ]
    assert "machine__findnew_dso;dso__new;__refcnt__init;[dso] 2\n" in text_of(write_folded_objects, findings())


def test_folded_stacks_of_references_alone_are_objects() -> None:
    found = findings()
    only = replace(found, leaks=tuple(leak for leak in found.leaks if leak.kind == "reference"))
    assert text_of(write_folded, only).endswith("dso__new;__refcnt__init;[dso] 2\n")


def test_a_name_cannot_break_a_folded_line() -> None:
    code = Code()
    stack = code.stack(1, code.frame("a;b\nc 7"))
    found = analyse(snapshot(code, allocations=blocks({"size": 5, "stack": stack})), code.symbols)
    assert text_of(write_folded, found) == "srv;a:b\\x0ac 7;malloc 5\n"


def test_speedscope_files_fit_their_schema() -> None:
    code = Code()
    lost = analyse(snapshot(code, allocations=blocks({"size": 5, "stack": 99})), {})
    for found in (findings(), nothing(), two_servers(), lost, replace(nothing(), processes=())):
        jsonschema.validate(json.loads(text_of(write_speedscope, found)), SPEEDSCOPE)
    broken = json.loads(text_of(write_speedscope, findings()))
    broken["profiles"][0]["unit"] = "pages"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, SPEEDSCOPE)


def test_speedscope_has_paths_with_places() -> None:
    document = json.loads(text_of(write_speedscope, two_servers()))
    frames, (size, objects, errors) = document["shared"]["frames"], document["profiles"]
    assert (size["unit"], size["endValue"], objects["endValue"]) == ("bytes", 1077333, 12)
    assert [frames[number]["name"] for number in size["samples"][1]] == PAGES.split(";")
    assert {"name": "parse_body", "file": "body.c"} in frames
    assert frames[objects["samples"][1][-1]] == {"name": "[dso]"}
    found = two_servers().errors
    assert (errors["name"], errors["endValue"]) == ("errors", sum(error.count for error in found))
    assert frames[errors["samples"][0][-1]] == {"name": f"[{found[0].kind}]"}
    assert json.loads(text_of(write_speedscope, nothing()))["profiles"][2:] == []


def test_speedscope_has_a_frame_for_each_function() -> None:
    """Its left-heavy view sums by frame: a function with two lines would be two."""
    code = Code()
    lines = [
        code.stack(line, code.frame("f", f"a.c:{line}"), code.frame("main", f"a.c:{line + 10}")) for line in (1, 2)
    ]
    found = analyse(snapshot(code, allocations=blocks(*({"size": 5, "stack": id_} for id_ in lines))), code.symbols)
    frames = json.loads(text_of(write_speedscope, found))["shared"]["frames"]
    assert sorted(frame["name"] for frame in frames) == ["f", "main", "malloc", "srv"]


def test_freed_blocks_are_summed_by_stack_on_request() -> None:
    snap, code = server()
    assert analyse(snap, code.symbols).freed == ()
    (freed,) = analyse(snap, code.symbols, AnalysisOptions(freed_stacks=True)).freed
    assert (freed.count, freed.stack[1].function) == (17_993, "parse_body")


def test_code_ranges_are_link_addresses_of_executable_mappings() -> None:
    mapping = Mapping(812, 1, 0x55001000, 0x55003000, 0x1000, 1, True, 0, link_address=0x1000)
    same = replace(mapping, pid=813, start=0x66001000, end=0x66003000)
    data, unknown = replace(mapping, executable=False, link_address=0x9000), replace(mapping, link_address=None)
    fixed = replace(mapping, binary=2, link_address=mapping.start)
    found = analyse(snapshot(processes=(process(),), mappings=(fixed, mapping, same, data, unknown)), {})
    assert found.code == (
        CodeRange("/lib/x86_64-linux-gnu/libc.so.6", "bb22", 0x55001000, 0x55003000, 0x1000, fixed=True),
        CodeRange("/usr/bin/srv", "aa11", 0x1000, 0x3000, 0x1000, fixed=False),
    )


def test_survivors_accumulate_to_the_whole() -> None:
    snap, code = server()
    steps = analyse(snap, code.symbols).survivors
    assert len(steps) == 100
    assert (steps[-1].time_ns, steps[-1].count, steps[-1].bytes) == (snap.duration_ns, 11, 1077333 + 4096)
    assert (steps[0].mapped_bytes, steps[-1].mapped_bytes) == (1 << 20, 1 << 20)
    assert steps[0].bytes == (1 << 20) + 4096 + 13 + 4096 + 72
    assert [step.bytes for step in steps] == sorted(step.bytes for step in steps)
    assert analyse(snapshot(), {}).survivors == ()


def test_flamegraph_pl_would_read_each_line() -> None:
    for line in text_of(write_folded, findings()).splitlines():
        path, _, amount = line.rpartition(" ")
        assert int(amount) > 0
        assert all(path.split(";"))
