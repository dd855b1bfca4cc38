"""The text report, as a stranger reads it."""

from __future__ import annotations

import io
import re
import signal
from dataclasses import replace

import pytest
from hand_made import DSO, LOSSES, SECOND, Code, blocks, broken_rules, events, objects, process, server, snapshot

from tracer.analysis import AnalysisOptions, analyse
from tracer.model.events import ErrorKind
from tracer.model.findings import Findings, TypeRow
from tracer.model.frames import NO_SYMBOL, Frame
from tracer.model.operations import Operation
from tracer.model.records import StackStatus
from tracer.report import TextOptions, write_text
from tracer.report.amounts import counted, duration, exact_size, size
from tracer.report.names import shorten
from tracer.report.page import Page
from tracer.report.type_table import add_types
from tracer.report.verdict_line import verdict


def text(findings: Findings, **options: object) -> str:
    stream = io.StringIO()
    write_text(findings, stream, TextOptions(**options))  # type: ignore[arg-type]
    return stream.getvalue()


CLEAN = """\
refleak: clean

target   ./srv --port 80
         pid 812, launched, traced for 61.0 s, exited with status 0
data     complete: 2,204,117 events, 0 lost
"""

LOST = """\
refleak: no leak found, but data were lost

target   ./srv --port 80
         pid 812, launched, traced for 61.0 s, exited with status 0
data     NOT COMPLETE: 2,204,117 events, 317 lost
         300 lost: map of live blocks full; cure: --max-objects 2000000
         17 lost: event ring full; cure: --ring-size 64M

refleak: no leak found, but data were lost
"""

ATTACHED = """\
refleak: clean: nothing made since the trace began is outstanding

target   ./srv --port 80
         pid 812, attached, traced for 61.0 s, still runs; what is older than
         the trace is unknown
data     complete: 2,204,117 events, 0 lost
"""

FULL = """\
refleak: LEAK: 2 objects of 1 type, 28.1 KiB in 9 blocks, 1.0 MiB in 1 mapping,
         1 error (over-put)
         not all of map was seen: no probe on 3 inlined copies of map__get (get:
         its parameter was optimised away)

target   ./srv --port 80
         pid 812, launched, traced for 61.0 s, exited with status 0
         and 1 child process
data     as far as seen: 2,204,117 events, 0 lost
probes   34 attached; 1 function not covered: map__get (inlined everywhere);
         inlined copies not covered: map__get (3)

type      created    gets    puts    destroyed    alive
------  ---------  ------  ------  -----------  -------
dso            40     120     119           38        2
map             7       3      10            7        0

---- pid 812, exited with status 0: ./srv --port 80

#1  2 x dso leaked, count 2
    2 references to dso, taken in map__new (map.c:61), were never put; none
    taken there was ever put; weak, 95 %: 1 other place may be meant too
    created at                                                   id 7235c2380deb
      __refcnt__init        refcnt.c:3
      dso__new              dso.c:88  <-- your code
      machine__findnew_dso  machine.c:40
      main                  srv.c:21
    never put: 2 gets [weak, 95 %]
      __refcnt__get refcnt.c:9 < map__new map.c:61
      < thread__insert_map thread.c:9 < main srv.c:21
      no object that ended took a reference here; judged by order and nearness
      alone
    or never put: 2 references of the creator [weak, 67 %]
      __refcnt__init refcnt.c:3 < dso__new dso.c:88
      < machine__findnew_dso machine.c:40 < main srv.c:21
      no object created here ever ended; judged by order and nearness alone
    balance: +6 -2 = +4
      +6 -2 = +4  main srv.c:21
      +4 -0 = +4    thread__insert_map > map__new map.c:61
      +2 -0 = +2    machine__findnew_dso > dso__new dso.c:88
      +0 -2 = -2    map__delete map.c:203
    4 gets
      4  __refcnt__get refcnt.c:9 < map__new map.c:61
         < thread__insert_map thread.c:9 < main srv.c:21
    2 puts
      2  __refcnt__put refcnt.c:14 < map__delete map.c:203 < main srv.c:21
    one-off: all made at once, and none that stayed in the 61.0 s since
    note: the counter of 1 of 2 changed without a traced call: one reads 3 where
          gets and puts give 2
    at 0x19000, 0x19040; oldest 61.0 s

#2  28.0 KiB (28,672 bytes) leaked: 7 blocks of 4,096 (malloc)
    allocated at                                                 id ca22a120ac9f
      malloc          [libc.so.6]
      parse_body      body.c:118  <-- your code
      handle_request  http.c:402  (inlined)
      serve           http.c:77
      main            srv.c:21
    made here 18,000, freed 17,993
    one-off: all made within 6.0 s, and none that stayed in the 55.0 s since
    at 0x5500, 0x6500, 0x7500 and 4 more; oldest 61.0 s

and 2 more entries: 13 bytes in 1 block, 1.0 MiB in 1 mapping (--top 4 lists
all)

---- pid 813, child of 812, exited with status 3: sh -c true

#3  72 bytes leaked: 1 block (malloc)
    allocated at                                                 id 191e34b0247c
      malloc                 [libc.so.6]
      libstdc++.so.6+0x10c0  (stripped)
      (stack cut here: the next caller has no unwind table)
    one-off: made once, and none that stayed in the 61.0 s since
    at 0x300; age 61.0 s

inherited by fork, no leak: 8.0 KiB in 2 blocks

E1  over-put of dso at 0x19100, 2 times
    put at                                                               pid 812
      __refcnt__put  refcnt.c:14
      thread__exit   thread.c:99
      main           srv.c:21
    count reached zero at
      __refcnt__put  refcnt.c:14
      map__delete    map.c:203
      main           srv.c:21
    created at
      __refcnt__init        refcnt.c:3
      dso__new              dso.c:88
      machine__findnew_dso  machine.c:40
      main                  srv.c:21

suppressed: 4.0 KiB in 1 block: built-in:stdio-buffer (1)

next: refleak --format json -o leaks.json --exec ./srv --port 80

refleak: LEAK: 2 objects of 1 type, 28.1 KiB in 9 blocks, 1.0 MiB in 1 mapping,
         1 error (over-put)
"""


def test_a_clean_run_is_said_in_five_lines() -> None:
    assert text(analyse(snapshot(), {})) == CLEAN


def test_what_was_lost_is_listed_with_its_cure() -> None:
    assert text(analyse(snapshot(losses=LOSSES), {})) == LOST


def test_attached_says_what_it_cannot_know() -> None:
    snap = snapshot(mode="attached", target_ended=False, processes=(process(ended_ns=None, exit_code=None),))
    assert text(analyse(snap, {})) == ATTACHED


def test_a_snapshot_of_nothing_at_all_has_a_report() -> None:
    assert text(analyse(snapshot(processes=(), events_seen=0, duration_ns=0), {})).startswith("refleak: clean\n")


def test_the_whole_report() -> None:
    snap, code = server()
    found = analyse(snap, code.symbols)
    assert text(found, top=2, next_command="refleak --format json -o leaks.json --exec ./srv --port 80") == FULL


def test_lost_data_take_the_certainty_away() -> None:
    snap, code = server()
    report = text(analyse(replace(snap, losses=LOSSES), code.symbols))
    assert report.startswith("refleak: LEAK, as far as seen: 2 objects")
    assert "but data were lost" in " ".join(report.split()[-12:])
    assert "definitely" not in report


def test_nothing_is_called_leaked_that_may_still_be_freed() -> None:
    snap, code = server()
    report = text(analyse(replace(snap, target_ended=False, errors=snap.errors[:0]), code.symbols))
    assert report.startswith("refleak: outstanding, not judged: 2 objects of 1 type, 28.1 KiB in 9 blocks")
    assert "leaked" not in report
    assert "LEAK" not in report


def test_children_with_the_same_entries_are_listed_once() -> None:
    code = Code()
    f, g = (code.stack(n, code.frame(name, f"{name}.c:{n}")) for n, name in ((1, "f"), (2, "g")))
    rows = [{"address": pid, "size": 3, "stack": f, "pid": pid} for pid in range(813, 819)]
    live = blocks({"address": 1, "size": 3, "stack": g}, *rows, {"address": 2, "size": 5, "stack": g, "pid": 818})
    children = (process(pid=pid, parent=812) for pid in range(813, 819))
    snap = snapshot(code, processes=(process(), *children), allocations=live)
    report = text(analyse(snap, code.symbols))
    assert re.findall(r"^---- pid (\d+)", report, re.MULTILINE) == ["812", "813", "818"]
    said = "the same in 4 more processes (pids 814, 815, 816 and 1 more): 12 bytes in 4 blocks ---- pid 818"
    assert said in " ".join(report.split())
    assert report.count("\n#") == 4
    assert report.startswith("refleak: LEAK: 26 bytes in 8 blocks")


def test_who_lost_most_comes_behind_the_target_and_no_more_than_asked_for() -> None:
    code = Code()
    lost = {812: 3, 813: 5, 814: 70, 815: 9, 816: 1}
    stacks = {pid: code.stack(pid, code.frame(f"f{pid}", f"f.c:{pid}")) for pid in lost}
    rows = [{"address": pid, "size": size, "stack": stacks[pid], "pid": pid} for pid, size in lost.items()]
    children = (process(pid=pid, parent=812) for pid in range(813, 817))
    snap = snapshot(code, processes=(process(), *children), allocations=blocks(*rows))
    for top, pids in ((10, ["812", "814", "815", "813", "816"]), (3, ["812", "814", "815"])):
        report = text(analyse(snap, code.symbols), top=top)
        assert re.findall(r"^---- pid (\d+)", report, re.MULTILINE) == pids
        rest = "and in 2 more processes (pids 813, 816): 6 bytes in 2 blocks (--top 5 lists all)"
        assert (rest in " ".join(report.split())) == (top == 3)
        assert report.startswith("refleak: LEAK: 88 bytes in 5 blocks")


def test_alive_at_exec_is_no_leak() -> None:
    code = Code()
    live = blocks({"address": 1, "size": 3, "stack": code.stack(1, code.frame("f", "f.c:1"))})
    snap = snapshot(code, processes=(process(by_exec=True), process(generation=2)), allocations=live)
    report = text(analyse(snap, code.symbols))
    assert report.startswith("refleak: clean; alive at exec: 3 bytes in 1 block\n")
    assert "not judged at an exec: 3 bytes in 1 block (--show reachable lists it)" in report
    assert "\n#" not in report and "----" not in report
    listed = text(analyse(snap, code.symbols), show=("lost", "reachable"))
    assert "#1  3 bytes alive at exec: 1 block (malloc)\n" in listed
    assert "not judged" not in listed


def test_errors_alone_make_the_verdict() -> None:
    code = Code()
    stack = code.stack(1, code.frame("f", "f.c:1"))
    rows = [{"error": kind, "stack": stack, "broken_type": DSO} for kind in (1, 1, 2, 3, ErrorKind.REINITIALISED)]
    report = text(analyse(snapshot(code, errors=broken_rules(*rows)), code.symbols))
    assert report.startswith("refleak: ERROR: 3 errors (delete-while-referenced, over-put, use-after-zero)\n"), (
        "merged ones count once, and to initialise again is none"
    )
    assert "E4" not in report
    said = "note: initialised again while counted: 1 x dso at f (f.c:1). That is no error by itself"
    assert said in " ".join(report.split())


@pytest.mark.parametrize(("kind", "signal_", "judged"), [
    (ErrorKind.OVER_PUT, signal.SIGSEGV, "ERROR, and outstanding, not judged: 1 object of 1 type, 1 error (over-put)"),
    (ErrorKind.OVER_PUT, signal.SIGTERM, "LEAK: 1 object of 1 type, 1 error (over-put)"),
    (ErrorKind.REINITIALISED, signal.SIGSEGV, "LEAK: 1 object of 1 type"),
])  # fmt: skip
def test_what_was_alive_in_a_crash_after_an_over_put_is_no_leak(kind: ErrorKind, signal_: int, judged: str) -> None:
    code = Code()
    stack = code.stack(1, code.frame("f", "f.c:1"))
    alive = objects({"address": 0x10, "stack": stack, "count": 1, "initial": 1})
    broken = broken_rules({"error": kind, "stack": stack, "broken_type": DSO})
    snap = snapshot(code, processes=(process(signal=signal_, exit_code=None),), objects=alive, errors=broken)
    found = analyse(snap, code.symbols)
    assert " ".join(text(found).split()).startswith(f"refleak: {judged}")
    assert any("is not judged" in note for note in found.notes) is judged.startswith("ERROR")


def test_no_line_is_wider_than_the_page() -> None:
    snap, code = server()
    found = analyse(replace(snap, losses=LOSSES, notes=("word " * 60,)), code.symbols, AnalysisOptions())
    for width in (60, 72, 80, 120):
        lines = text(found, width=width).splitlines()
        assert max(map(len, lines)) <= width
        assert not any(line.endswith(" ") for line in lines)


def test_long_names_give_way_to_places() -> None:
    code = Code()
    name = "std::_Rb_tree<Key, std::pair<Key const, Value>>::insert(std::pair<Key const, Value> const&) const"
    deep = "company::product::Registry<Key, company::Traits<Key>>::add(company::Key const&, unsigned long)"
    stack = code.stack(
        1, code.frame(name, "/usr/include/stl_tree.h:1234"), code.frame(deep, "a_rather_long_file.cpp:98765")
    )
    report = text(analyse(snapshot(code, allocations=blocks({"address": 1, "stack": stack})), code.symbols), width=80)
    assert "      std::_Rb_tree<Key, std::pair<..>>::insert(..) const  stl_tree.h:1234\n" in report
    assert "      ..Registry<..>::add(..)        a_rather_long_file.cpp:98765  <-- your code\n" in report
    assert max(map(len, report.splitlines())) <= 80


def test_a_deep_stack_is_shown_at_both_ends() -> None:
    code = Code()
    stack = code.stack(1, *(code.frame(f"f{i}", f"f.c:{i}") for i in range(127)), status=StackStatus.TRUNCATED)
    report = text(analyse(snapshot(code, allocations=blocks({"address": 1, "stack": stack})), code.symbols))
    assert "f22     f.c:22\n      ... 96 more frames ...\n      f119    f.c:119\n" in report
    assert "(stack cut here: deeper than the tracer follows)" in report


def test_escape_codes_only_where_wanted() -> None:
    snap, code = server()
    found = analyse(snap, code.symbols)
    assert "\033" not in text(found)
    painted = text(found, color=True)
    assert painted.startswith("\033[1;31mrefleak: LEAK")
    assert re.sub(r"\033\[[\d;]*m", "", painted) == text(found, color=False)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_no_color_is_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    found = analyse(snapshot(), {})
    for value, painted in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", value)
        stream = Terminal()
        write_text(found, stream)
        assert ("\033" in stream.getvalue()) is painted


def test_a_terminal_sets_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    snap, code = server()
    found = analyse(snap, code.symbols)
    stream = Terminal()
    write_text(found, stream)
    assert stream.getvalue() == text(found, width=100)
    assert text(found) == text(found, width=80), "piped: COLUMNS does not count"


def test_names_of_the_target_cannot_command_the_terminal() -> None:
    code = Code()
    stack = code.stack(1, code.frame("evil\033[2J\n", "f.c:1"))
    live = blocks({"address": 1, "stack": stack})
    report = text(analyse(snapshot(code, allocations=live, notes=("a\033b",)), code.symbols))
    assert "evil\\x1b[2J\\x0a" in report
    assert "\033" not in report


def test_a_stream_that_knows_ascii_only_gets_ascii() -> None:
    code = Code()
    stack = code.stack(1, code.frame("größe", "f.c:1"))
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    write_text(analyse(snapshot(code, allocations=blocks({"address": 1, "stack": stack})), code.symbols), stream)
    stream.flush()
    assert b"gr\\xf6\\xdfe" in raw.getvalue()


def test_start_up_code_is_left_out_but_not_a_lone_stranger() -> None:
    code = Code()
    start = code.frame(None, binary=2, why_unknown="stripped")
    whole = code.stack(1, code.frame("main", "m.c:1"), start, code.frame("_start"))
    lone = code.stack(2, code.frame("f", "f.c:1"), start)
    live = blocks({"address": 1, "stack": whole, "size": 2}, {"address": 2, "stack": lone, "size": 1})
    report = text(analyse(snapshot(code, allocations=live), code.symbols))
    assert "_start" not in report
    assert report.count("libc.so.6+0x1010") == 1


def test_missing_symbols_are_said_once_with_what_to_do() -> None:
    code = Code()
    stack = code.stack(1, *(code.frame(None, why_unknown=NO_SYMBOL) for _ in range(2)), code.frame("main", "m.c:1"))
    report = text(analyse(snapshot(code, allocations=blocks({"address": 1, "stack": stack})), code.symbols))
    assert NO_SYMBOL not in report
    assert "note: no symbols for srv (2 places): install their debug symbols, or name them\n" in report


def test_frames_of_scripts_and_generated_code_are_marked() -> None:
    code = Code()
    stack = code.stack(1, 1, 2)
    symbols = {
        1: (Frame("handler", file="app.py", line=7, kind="guest", language="Python"),),
        2: (Frame("square", kind="jit"),),
    }
    report = text(analyse(snapshot(code, allocations=blocks({"address": 1, "stack": stack})), symbols))
    assert "      handler  app.py:7  <-- your code, Python\n" in report
    assert "      square     (jit)\n" in report


def test_many_stacks_of_gets_are_bounded_and_add_up() -> None:
    code = Code()
    born = code.stack(1, code.frame("new", "o.c:1"))
    gets = [code.stack(10 + i, code.frame(f"user{i}", f"u.c:{i}")) for i in range(7)]
    history = [
        {"address": 1, "operation": Operation.GET, "stack": s} for i, s in enumerate(gets) for _ in range(11 - i)
    ]
    live = objects({"address": 1, "stack": born, "gets": len(history), "count": len(history) + 1})
    report = text(analyse(snapshot(code, objects=live, history=events(*history)), code.symbols))
    assert "    56 gets\n      11  user0 u.c:0\n      10  user1 u.c:1\n" in report
    assert "       7  user4 u.c:4\n      11  from 2 other stacks\n" in report


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0 bytes"), (1, "1 byte"), (1023, "1,023 bytes"), (1024, "1.0 KiB (1,024 bytes)"),
        (1_048_575, "1.0 MiB (1,048,575 bytes)"), (1 << 30, "1.0 GiB (1,073,741,824 bytes)"),
    ],
)  # fmt: skip
def test_sizes(value: int, words: str) -> None:
    assert exact_size(value) == words
    assert words.startswith(size(value))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0 ns"), (1_500, "1.5 us"), (2_100_000, "2.1 ms"), (999_900_000, "1.0 s"), (61 * SECOND, "61.0 s"),
        (303 * SECOND, "5 min 3 s"), (7500 * SECOND, "2 h 5 min"),
    ],
)  # fmt: skip
def test_durations(value: int, words: str) -> None:
    assert duration(value) == words


def test_singular_and_plural() -> None:
    assert [counted(n, "block") for n in (0, 1, 1310)] == ["0 blocks", "1 block", "1,310 blocks"]
    assert counted(2, "entry", "entries") == "2 entries"


@pytest.mark.parametrize(
    ("name", "room", "short"),
    [
        ("dso__new", 20, "dso__new"),
        ("foo(int, char const*)", 12, "foo(..)"),
        ("Foo::bar(int, char const*) const", 22, "Foo::bar(..) const"),
        ("foo()", 8, "foo()"),
        ("std::map<int, std::vector<long>>::at(int)", 38, "std::map<int, std::vector<..>>::at(..)"),
        ("std::map<int, std::vector<int>>::at(int)", 22, "std::map<..>::at(..)"),
        ("void apply<Foo>(Foo&)", 14, "apply<..>(..)"),
        ("Foo::operator<<(std::ostream&)", 24, "Foo::operator<<(..)"),
        ("Foo::operator()(int, int, int) const", 28, "Foo::operator()(..) const"),
        ("Foo::operator->() const", 23, "Foo::operator->() const"),
        ("ns::keep[abi:v3][abi:c8tJTIeFIjxB2IKSgI4C](long long)", 40, "ns::keep(long long)"),
        ("ns::keep[abi:v3][abi:c8tJTIeFIjxB2IKSgI4C](long long)", 12, "ns::keep(..)"),
        ("std::string[abi:cxx11] f()", 40, "std::string[abi:cxx11] f()"),
        ("a_very_long_function_name_of_c", 16, "..tion_name_of_c"),
        ("company::product::Registry::add", 20, "..Registry::add"),
        ("x" * 40, 3, "..xxxxxx"),
    ],
)
def test_names_are_shortened_from_what_tells_least(name: str, room: int, short: str) -> None:
    got = shorten(name, room)
    assert len(got) <= max(room, 8)
    assert got == short


@pytest.mark.parametrize(("number", "said"), [(11, "; but it was killed by SIGSEGV"), (15, "")])
def test_a_program_that_crashed_is_not_just_clean(number: int, said: str) -> None:
    snap = snapshot(processes=(process(exit_code=None, signal=number),))
    text = verdict(analyse(snap, {})).text
    assert text == f"refleak: clean{said}"


@pytest.mark.parametrize(
    ("numbers", "said"),
    [((15,), ""), ((11,), "; but its child 813 was killed by SIGSEGV"), ((11, 15, 6), "; but 2 children crashed")],
)
def test_children_that_crashed_are_said(numbers: tuple[int, ...], said: str) -> None:
    children = [process(813 + n, parent=812, exit_code=None, signal=number) for n, number in enumerate(numbers)]
    found = verdict(analyse(snapshot(processes=(process(), *children)), {}))
    assert found.text == f"refleak: clean{said}"
    assert found.style == ("warn" if said else "good")


def test_a_crash_is_said_though_another_process_has_had_that_pid_since() -> None:
    """Where pids end at 32,768, a trace of a test suite comes to the first ones again."""
    parent = process(by_exec=True)
    crashed = process(813, parent=812, exit_code=None, signal=11)
    forked = process(813, generation=2, parent=812, by_exec=True)
    executed = process(813, generation=3, parent=812)
    snap = snapshot(processes=(parent, crashed, process(generation=2), forked, executed))
    findings = analyse(snap, {})
    assert [(last.pid, last.generation) for last in findings.last_spaces] == [(812, 2), (813, 1), (813, 3)]
    assert verdict(findings).text == "refleak: clean; but its child 813 was killed by SIGSEGV"
    assert "and 2 child processes" in text(findings)


@pytest.mark.parametrize("width", [40, 52, 80])
def test_text_at_both_ends_of_a_line_fits_the_terminal(width: int) -> None:
    page = Page(width)
    page.ends("    their memory: 72 bytes lost: 3 blocks of 24 (calloc)", "id 2ddd7d3c9e66")
    lines = ["".join(span.text for span in line) for line in page.lines]
    assert max(map(len, lines)) <= width
    assert (lines[-1].endswith("id 2ddd7d3c9e66"), len(lines) == 1) == (True, width == 80)


@pytest.mark.parametrize("width", [40, 52, 80])
def test_the_table_of_types_fits_the_terminal(width: int) -> None:
    """At 40 columns the terminal broke its lines."""
    page = Page(width)
    add_types(page, (TypeRow("account", 11, 11, 19, 8, 3), TypeRow("session", 1_234_567, 0, 1, 1, 0)))
    lines = ["".join(span.text for span in line) for line in page.lines]
    assert max(map(len, lines)) <= width
    assert any(line.startswith("type ") for line in lines) == (width == 80)
    if width < 80:
        text = " ".join(" ".join(lines).split())
        assert text.startswith("account: 11 created, 11 gets, 19 puts, 8 destroyed, 3 alive session: 1,234,567 created")


def test_lines_of_a_report_fit_a_narrow_terminal() -> None:
    """At 40 columns the terminal broke "<-- your code" and places in their middle."""
    snap, code = server()
    lines = text(analyse(snap, code.symbols), width=40).splitlines()
    assert [line for line in lines if len(line) > 40] == []
    assert any(line.startswith("        ") and line.endswith("  <-- your code") for line in lines)
