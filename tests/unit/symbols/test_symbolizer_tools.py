"""Foreign symbolizers that are missing, die, hang or print nonsense: the next one answers, and a note says so."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from built_program import INLINED, binary, build, return_address
from hypothesis import given
from hypothesis import strategies as st

from tracer.symbols import Symbolizer
from tracer.symbols.addr2line import parse_addr2line
from tracer.symbols.dwarf_lookup import Tools, find_tools
from tracer.symbols.llvm_symbolizer import can_ask_about, parse_llvm_symbolizer
from tracer.symbols.raw_frame import Query, RawFrame
from tracer.symbols.tool import Output, find_tool, run_tool

REAL = find_tools()
TIMEOUT_S = 1.0
INLINED_NAMES = ["innermost", "middle", "hidden"]


@pytest.fixture
def fake(tmp_path: Path) -> Callable[[str], str]:
    def make(script: str) -> str:
        tool = tmp_path / f"tool{len(list(tmp_path.glob('tool*')))}"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        return str(tool)

    return make


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    sources = [INLINED.replace("n + 1", f"n + {i}") for i in range(1, 4)]
    return [build(tmp_path_factory.mktemp("program"), source, "-O2", "-g") for source in sources]


def names(programs: list[Path], tools: Tools) -> tuple[list[list[str | None]], tuple[str, ...]]:
    """Return the functions at each program's call of malloc, and the notes."""
    binaries = [binary(program, number) for number, program in enumerate(programs, 1)]
    keys = [b.id << 48 | return_address(Path(b.path), "hidden", "malloc") for b in binaries]
    symbolizer = Symbolizer(tools=tools)
    frames = symbolizer.symbolize(keys, binaries)
    return [[f.function for f in frames[key]] for key in keys], symbolizer.notes


FAILURES = {
    "exit 3": "ended with status 3",
    "kill -SEGV $$": "died of signal 11",
    "cat": "printed what is no answer",
    "exec tail -f /dev/null": "did not answer in 1 s",
    "true": "printed what is no answer",
    """echo '{"Address":"0x0","Symbol":[{"FunctionName":"wrong"}]}'""": "printed what is no answer",
    "printf '\\377\\n[]\\n'": "printed what is no answer",
}


@pytest.mark.parametrize(("script", "failure"), FAILURES.items())
def test_addr2line_answers_for_llvm_symbolizer(
    programs: list[Path], fake: Callable[[str], str], script: str, failure: str
) -> None:
    tools = Tools(fake(script), REAL.addr2line, TIMEOUT_S if "tail" in script else 60)
    assert names(programs[:1], tools) == ([INLINED_NAMES], (f"llvm-symbolizer {failure} on {programs[0]}",))


@pytest.mark.parametrize(("script", "failure"), FAILURES.items())
def test_our_own_symbols_answer_for_both(
    programs: list[Path], fake: Callable[[str], str], script: str, failure: str
) -> None:
    tools = Tools(fake(script), fake(script), TIMEOUT_S if "tail" in script else 60)
    found, notes = names(programs[:1], tools)
    assert found == [["hidden"]]
    assert notes == (f"llvm-symbolizer {failure} on {programs[0]}", f"addr2line {failure} on {programs[0]}")


def test_without_tools_a_note_says_why_there_are_no_lines(programs: list[Path]) -> None:
    assert names(programs[:1], Tools(None, None)) == (
        [["hidden"]], ("neither llvm-symbolizer nor addr2line can be used: no source lines",)
    )


def test_tools_that_do_not_exist(programs: list[Path]) -> None:
    found, notes = names(programs[:1], Tools("/nowhere/llvm-symbolizer", "/nowhere/addr2line"))
    assert found == [["hidden"]]
    assert [note.split(" (")[0] for note in notes] == ["llvm-symbolizer cannot be run", "addr2line cannot be run"]


def test_a_binary_that_kills_the_tool_costs_the_others_nothing(
    programs: list[Path], fake: Callable[[str], str]
) -> None:
    ask = f'echo "$line" | {REAL.llvm_symbolizer} "$@"'
    script = f'while IFS= read -r line; do case "$line" in *{programs[1]}*) exit 7;; esac; {ask}; done'
    found, notes = names(programs, Tools(fake(script), None))
    assert found == [INLINED_NAMES, ["hidden"], INLINED_NAMES]
    assert notes == (f"llvm-symbolizer ended with status 7 on {programs[1]}",)


def test_a_tool_that_hangs_gets_no_second_chance(programs: list[Path], fake: Callable[[str], str]) -> None:
    tool = fake(f"echo run >>{programs[0].parent}/runs; exec tail -f /dev/null")
    found, notes = names(programs, Tools(tool, None, TIMEOUT_S))
    assert found == [["hidden"]] * 3
    assert (programs[0].parent / "runs").read_text() == "run\n"
    assert notes == (f"llvm-symbolizer did not answer in 1 s on {programs[0]}",)


def test_a_hanging_tool_is_killed_with_its_children(fake: Callable[[str], str]) -> None:
    output = run_tool([fake("echo before; tail -f /dev/null & wait")], "", TIMEOUT_S)
    assert output == Output("before\n", "did not answer in 1 s", timed_out=True)


def test_a_detached_child_of_a_killed_tool_is_not_waited_for(fake: Callable[[str], str], tmp_path: Path) -> None:
    script = f"setsid sh -c 'echo $$ >{tmp_path}/child; exec tail -f /dev/null' & wait"
    output = run_tool([fake(script)], "", TIMEOUT_S)
    os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)
    assert output == Output("", "did not answer in 1 s", timed_out=True)


def test_a_tool_that_is_not_asked_in_the_end_is_ended(
    programs: list[Path], fake: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(psutil.Process().children())  # other tests' too

    def interrupted(*_: object) -> None:
        assert len(set(psutil.Process().children()) - before) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr("tracer.symbols.symbolizer._passes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        names(programs, Tools(fake("exec tail -f /dev/null"), None))
    assert not set(psutil.Process().children()) - before


def test_tools_do_not_ask_debuginfod(fake: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://localhost:1")
    assert run_tool([fake('echo "[$DEBUGINFOD_URLS]"')], "") == Output("[]\n")


def test_a_versioned_tool_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_tool("llvm-symbolizer") is None
    for version in ("9", "14", "x"):
        (tmp_path / f"llvm-symbolizer-{version}").touch(0o755)
    assert find_tool("llvm-symbolizer") == str(tmp_path / "llvm-symbolizer-14")
    (tmp_path / "llvm-symbolizer").touch(0o755)
    assert find_tool("llvm-symbolizer") == str(tmp_path / "llvm-symbolizer")


def test_an_answer_of_llvm_symbolizer() -> None:
    symbols = [
        {"FunctionName": "inner", "FileName": "/a b/x.c", "Line": 3, "StartAddress": "0x10"},
        {"FunctionName": "??", "FileName": "", "Line": 0, "StartAddress": ""},
        {"FunctionName": "near", "FileName": "crtstuff.c", "Line": 0},
    ]
    lines = [json.dumps({"Address": "0x11", "Symbol": symbols}), json.dumps({"Address": "0x12", "Error": {}})]
    reply = parse_llvm_symbolizer("\n".join(lines), [Query("a", (0x11,)), Query("b", (0x12, 0x13))])
    inner = RawFrame("inner", "/a b/x.c", 3, 0x10)
    assert reply.answers == ({0x11: (inner, RawFrame(), RawFrame("near"))}, {0x12: ()})
    assert reply.failure == "printed what is no answer"


ADDR2LINE = """\
0x0000000000000011
_ZN1a1bEv
/a:b/x.cc:3 (discriminator 2)
outer
/a:b/x.cc:9
0x0000000000000012
??
??:0
0x0000000000000013
near
crtstuff.c:?
"""


def test_an_answer_of_addr2line() -> None:
    reply = parse_addr2line(ADDR2LINE, Query("a", (0x11, 0x12, 0x13)))
    inlined = (RawFrame("_ZN1a1bEv", "/a:b/x.cc", 3), RawFrame("outer", "/a:b/x.cc", 9))
    assert reply.answers == ({0x11: inlined, 0x12: (RawFrame(),), 0x13: (RawFrame("near"),)},)
    assert reply.failure is None


def test_a_cut_answer_of_addr2line_is_left_out() -> None:
    cut = parse_addr2line(ADDR2LINE[: ADDR2LINE.index("outer")], Query("a", (0x11, 0x12)), whole=False)
    assert (cut.answers, cut.failure) == (({},), "printed what is no answer")


def test_a_name_that_addr2line_guessed_is_dropped() -> None:
    """Its innermost name is the nearest symbol's where the inlined C++ function has no linkage name."""
    text = "0x11\nmain\n/usr/include/c++/12/thread:3\nmain\n/src/x.cc:9\n"
    (answers,) = parse_addr2line(text, Query("a", (0x11,))).answers
    assert answers[0x11] == (RawFrame(None, "/usr/include/c++/12/thread", 3), RawFrame("main", "/src/x.cc", 9))


def test_recursion_inlined_in_c_keeps_its_name() -> None:
    text = "0x11\nwalk\n/src/x.c:3\nwalk\n/src/x.c:9\n"
    (answers,) = parse_addr2line(text, Query("a", (0x11,))).answers
    assert [frame.function for frame in answers[0x11]] == ["walk", "walk"]


@pytest.mark.parametrize(
    ("path", "fits"), [("/a b", True), ('/a"b', True), ("/a'b", True), ("/\"'", False), ("/\n", False)]
)
def test_which_paths_fit_into_a_line(path: str, fits: bool) -> None:
    assert can_ask_about(path) == fits


NASTY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["0x11", "??"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["Address", "Symbol", "FunctionName", "FileName", "Line", "StartAddress"]), inner, max_size=4
    ),
)
QUERIES = [Query("a", (0x11, 0x12)), Query("b", (0x13,))]


@given(st.text(max_size=200) | st.lists(NASTY_JSON.map(json.dumps), max_size=4).map("\n".join))
def test_any_answer_of_llvm_symbolizer_is_survived(text: str) -> None:
    reply = parse_llvm_symbolizer(text, QUERIES)
    assert [set(a) <= set(q.addresses) for a, q in zip(reply.answers, QUERIES, strict=True)] == [True, True]


@given(st.lists(st.sampled_from(["0x11", "0x12", "??", "??:0", "f", "/x.c:3", "x:?", ":", ""]) | st.text(max_size=9)))
def test_any_answer_of_addr2line_is_survived(lines: list[str]) -> None:
    (answers,) = parse_addr2line("\n".join(lines), QUERIES[0]).answers
    assert set(answers) <= {0x11, 0x12}


def test_the_environment_is_left_as_it_was(fake: Callable[[str], str]) -> None:
    before = dict(os.environ)
    run_tool([fake("true")], "")
    assert dict(os.environ) == before
