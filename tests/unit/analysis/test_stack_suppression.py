"""Valgrind's syntax, generated suppressions, and those that match nothing."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hand_made import server
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.analysis.analysis import analyse
from tracer.analysis.options import AnalysisOptions
from tracer.analysis.suppression import parse_suppressions
from tracer.errors import SpecInvalid
from tracer.model.findings import Findings, Leak
from tracer.model.frames import Frame
from tracer.report.suppression_text import write_suppressions

LEAK = Leak(
    "id", "allocation", "malloc", 1, "leaked", 1, 1,
    tuple(Frame(f, "srv", "/usr/bin/srv", file="/src/a.c", line=7) for f in ("strdup", "name_of", "load", "main")),
    True, "complete",
)  # fmt: skip


def block(*lines: str) -> str:
    return "\n".join(["{", "  a name", "  Memcheck:Leak", *(f"  {line}" for line in lines), "}"])


@pytest.mark.parametrize(
    ("lines", "matches"),
    [
        (("fun:strdup",), True),
        (("fun:strdup", "fun:name_of", "fun:load", "fun:main"), True),
        (("fun:strdup", "fun:load"), False),
        (("fun:name_of",), False),
        (("fun:str*", "fun:name??f"), True),
        (("...", "fun:load"), True),
        (("fun:strdup", "...", "fun:main"), True),
        (("fun:strdup", "...", "fun:load", "...", "fun:main", "..."), True),
        (("...", "fun:main", "fun:_start"), False),
        (("fun:malloc", "fun:strdup"), True),
        (("fun:*alloc*", "fun:strdup", "fun:name_of"), True),
        (("fun:malloc", "fun:malloc", "fun:strdup"), False),
        (("obj:/usr/bin/srv",), True),
        (("obj:*/srv", "obj:/lib/*"), False),
        (("src:/src/a.c:7", "src:/src/a.c"), True),
        (("src:/src/a.c:8",), False),
        (("match-leak-kinds: reachable", "fun:strdup"), True),
        (("fun:str[d]up",), False),
    ],
)
def test_a_block_matches_from_the_leaf(lines: tuple[str, ...], matches: bool) -> None:
    (rule,) = parse_suppressions(block(*lines), "f")
    assert rule.matches(LEAK) is matches
    assert (str(rule), rule.source) == ("a name", "f:1")


def test_both_syntaxes_in_one_file_and_other_tools_blocks() -> None:
    text = f"# c\nleak:foo\n{block('fun:f')}\n{{\n x\n Memcheck:Cond\n fun:g\n}}\nref:dso\n"
    assert [str(rule) for rule in parse_suppressions(text, "f")] == ["leak:foo", "a name", "ref:dso"]


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        (block("fun:f")[:-1], "f:1", "without its closing brace"),
        ("\n{\n}", "f:2", "a block has a name"),
        (block("fun"), "f:1", "not a line of a stack"),
        (block("..."), "f:1", "would match everything"),
        (block("fun:*", "obj:?"), "f:1", "would match everything"),
        (block(), "f:1", "would match everything"),
        ("leak:x\nfoo", "f:2", "not a suppression"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, where: str, what: str) -> None:
    with pytest.raises(SpecInvalid, match=what) as failure:
        parse_suppressions(text, "f")
    assert str(failure.value).startswith(f"{where}: ")


@given(st.text(alphabet="{}fun:.*\n leakMemch", max_size=80))
@settings(max_examples=200, deadline=None)
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        rules = parse_suppressions(text, "f")
    except SpecInvalid:
        return
    for rule in rules:
        rule.matches(LEAK)


def found(text: str = "") -> Findings:
    snapshot, code = server()
    return analyse(snapshot, code.symbols, AnalysisOptions(parse_suppressions(text, "own.supp")))


def generated(syntax: str, findings: Findings | None = None) -> str:
    stream = io.StringIO()
    write_suppressions(found() if findings is None else findings, stream, syntax)
    return stream.getvalue()


@pytest.mark.parametrize("syntax", ["lsan", "valgrind"])
def test_what_is_generated_suppresses_what_it_was_made_of(syntax: str) -> None:
    findings = found(generated(syntax))
    assert [leak.state for leak in findings.leaks] == ["inherited"]
    assert not [note for note in findings.notes if "matched nothing" in note]


def test_each_generated_block_suppresses_its_own_entry_only() -> None:
    blocks = [f"{{{part}" for part in generated("valgrind").split("{")[1:]]
    leaked = [leak for leak in found().leaks if leak.state != "inherited"]
    for text, own in zip(blocks, leaked, strict=True):
        body = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
        assert [leak.id for leak in found(body).suppressed if leak.suppressed_by == f"refleak-{own.id}"] == [own.id]


@pytest.mark.parametrize("syntax", ["lsan", "valgrind"])
@pytest.mark.parametrize("clone", ["log_slow.isra.0", "log_slow.part.0.constprop.1", "log_slow.cold"])
def test_a_clone_is_suppressed_by_the_name_that_the_next_build_has_too(syntax: str, clone: str) -> None:
    stack = (replace(LEAK.stack[0], function=clone), *LEAK.stack[1:])
    text = generated(syntax, replace(found(), leaks=(replace(LEAK, stack=stack, own_frame=0),)))
    assert "log_slow*" in text
    for other in ("log_slow.isra.3", "log_slow"):
        built_again = replace(LEAK, stack=(replace(stack[0], function=other), *stack[1:]))
        assert any(rule.matches(built_again) for rule in parse_suppressions(text, "s"))


def test_a_leak_in_main_gets_no_pattern_that_matches_all() -> None:
    findings = found()
    only = replace(LEAK, stack=LEAK.stack[-1:], own_frame=0)
    assert "leak:" not in generated("lsan", replace(findings, leaks=(only,)))


def test_nothing_found_nothing_generated() -> None:
    assert generated("lsan", replace(found(), leaks=())) == ""


def test_a_suppression_that_matches_nothing_is_named() -> None:
    notes = found("leak:dso__new\nleak:gone_since\n" + block("fun:nowhere")).notes
    assert [note for note in notes if "matched nothing" in note] == [
        "suppression leak:gone_since (own.supp:2) matched nothing",
        "suppression a name (own.supp:3) matched nothing",
    ]
