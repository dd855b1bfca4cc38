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
from tracer.model.findings import ErrorFinding, Findings, Leak
from tracer.model.frames import Frame
from tracer.pipeline.linked_names import with_written_names
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


ERROR = ErrorFinding("double-free", "malloc", 1, 2, 0x1000, LEAK.stack[1:], LEAK.stack, LEAK.stack[2:])


@pytest.mark.parametrize(
    ("lines", "matches"),
    [
        (("fun:free", "fun:name_of", "fun:load"), True),
        (("fun:_ZdlPv", "fun:name_of"), True),
        (("fun:*", "fun:name_of"), True),
        (("fun:name_of",), True),
        (("fun:free", "fun:load"), False),
        (("fun:malloc", "fun:name_of"), False),
        (("...", "fun:main"), True),
    ],
)
def test_a_block_for_frees_matches_errors_alone(lines: tuple[str, ...], matches: bool) -> None:
    (rule,) = parse_suppressions(block(*lines).replace("Memcheck:Leak", "Memcheck:Free"), "f")
    assert rule.matches_error(ERROR) is matches
    assert not rule.matches_error(replace(ERROR, kind="over-put"))
    assert not rule.matches(replace(LEAK, stack=ERROR.stack))
    (of_leaks,) = parse_suppressions(block(*lines), "f")
    assert not of_leaks.matches_error(ERROR)


@pytest.mark.parametrize(("syntax", "kind"), [("lsan", "double-free"), ("lsan", "over-put"), ("valgrind", "over-put")])
def test_what_other_tools_would_refuse_is_a_comment(syntax: str, kind: str) -> None:
    error = replace(ERROR, kind=kind)
    text = generated(syntax, replace(found(), leaks=(), errors=(error,)))
    assert parse_suppressions(text, "s") == ()
    (rule,) = parse_suppressions(text.replace("# error", "error"), "s")
    assert rule.matches_error(error)


def test_a_bad_free_has_a_block_of_its_own() -> None:
    (rule,) = parse_suppressions(generated("valgrind", replace(found(), leaks=(), errors=(ERROR,))), "s")
    assert rule.matches_error(ERROR)
    assert not rule.matches_error(replace(ERROR, stack=(Frame("another", "srv", "/usr/bin/srv"), *ERROR.stack)))


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
        rule.matches_error(ERROR)


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


def cpp_leak(*functions: str, type_: str = "malloc") -> Leak:
    stack = tuple(Frame(f, "srv", "/usr/bin/srv") for f in functions)
    return replace(LEAK, stack=(Frame("malloc", "libc.so.6", "/lib/libc.so.6"), *stack), type=type_, maker="malloc")


@pytest.mark.parametrize("new", ["_Znwm", "_Znam", "_ZnwmRKSt9nothrow_t", "_Zn*"])
def test_names_as_linked_match_what_is_written(new: str) -> None:
    text = block(f"fun:{new}", "fun:_ZN2ns9open_connEv.isra.0", "fun:_ZL8log_slowiiPKc*", "fun:main")
    (rule,) = with_written_names(parse_suppressions(text, "f"))
    made = ("operator new(unsigned long)", "ns::open_conn()", "log_slow(int, int, char const*)", "main")
    assert rule.matches(cpp_leak(*made))
    assert not rule.matches(cpp_leak(*made[:1], "ns::open_conn(int)", *made[2:]))


def lines_of(leak: Leak) -> list[str]:
    text = generated("valgrind", replace(found(), leaks=(leak,)))
    return [line.strip() for line in text.splitlines() if line.startswith("   ")][3:]


def test_any_operator_new_stands_for_the_others() -> None:
    assert lines_of(cpp_leak("_Znwm", "_Z3arrv", "main")) == ["fun:_Zn*", "fun:_Z3arrv", "fun:main"]


@pytest.mark.parametrize(
    ("type_", "first"),
    [("posix_memalign", ["fun:*align*", "..."]), ("aligned_alloc", ["fun:*align*"]), ("realloc", ["fun:*alloc*"])],
)
def test_aligned_blocks_are_made_by_another_function_of_valgrind(type_: str, first: list[str]) -> None:
    leak = replace(cpp_leak("fill", "main", type_=type_), maker=type_)
    assert lines_of(leak) == [*first, "fun:fill", "fun:main"]
    (rule,) = parse_suppressions(generated("valgrind", replace(found(), leaks=(leak,))), "s")
    assert rule.matches(leak)


def test_a_block_ends_where_a_thread_starts_and_knows_no_version_of_a_library() -> None:
    leak = cpp_leak("fill", "_M_run", "start_thread", "clone3")
    library = Frame(None, "libstdc++.so.6", "/lib/x86_64-linux-gnu/libstdc++.so.6")
    program = Frame(None, "srv", "/usr/bin/srv")
    leak = replace(leak, stack=(*leak.stack[:3], library, program, *leak.stack[3:]))
    assert lines_of(leak)[1:] == ["fun:fill", "fun:_M_run", "obj:*/libstdc++.so*", "obj:*/srv", "fun:start_thread"]


def test_what_was_inlined_has_a_bare_name_in_valgrind() -> None:
    leak = cpp_leak("_ZN4Pool5visitEi", "_Z6sharedv", "main")
    leak = replace(leak, stack=(leak.stack[0], replace(leak.stack[1], inlined=True), *leak.stack[2:]))
    assert lines_of(leak)[1:] == ["fun:*", "fun:_Z6sharedv", "fun:main"]


def test_that_valgrind_cannot_read_them_is_said_where_names_are_written() -> None:
    hint = "# valgrind compares names of C++ as linked, not known here: make these where the program is\n"
    for functions, said in ((("ns::open_conn()", "main"), True), (("_ZN2ns9open_connEv", "main"), False)):
        text = generated("valgrind", replace(found(), leaks=(cpp_leak(*functions),)))
        assert text.startswith(hint) is said


def test_nothing_found_nothing_generated() -> None:
    assert generated("lsan", replace(found(), leaks=(), errors=())) == ""


def test_a_suppression_that_matches_nothing_is_named() -> None:
    notes = found("leak:dso__new\nleak:gone_since\n" + block("fun:nowhere")).notes
    assert [note for note in notes if "matched nothing" in note] == [
        "suppression leak:gone_since (own.supp:2) matched nothing",
        "suppression a name (own.supp:3) matched nothing",
    ]
