"""Names as linked in what is generated for valgrind, of a report whose names are as they are written."""

from __future__ import annotations

import io
from dataclasses import replace

from hand_made import server

from tracer.model.frames import Frame, Symbols
from tracer.pipeline.judge_options import JudgeOptions
from tracer.pipeline.linked_names import linked_names
from tracer.pipeline.report import report_of


def renamed(symbols: Symbols, names: dict[str, str]) -> Symbols:
    def named(frame: Frame) -> Frame:
        return replace(frame, function=names.get(frame.function or "", frame.function))

    return {key: tuple(map(named, frames)) for key, frames in symbols.items()}


def test_valgrind_is_given_names_as_linked_and_the_report_keeps_its_own() -> None:
    snapshot, made = server()
    written = renamed(made.symbols, {"dso__new": "ns::dso::make(int)"})
    linked = renamed(made.symbols, {"dso__new": "_ZN2ns3dso4makeEi.part.0"})
    asked: list[JudgeOptions] = []

    def again(options: JudgeOptions) -> Symbols:
        asked.append(options)
        return linked

    report = report_of(snapshot, written, JudgeOptions(), named_again=again)
    out = io.StringIO()
    report.write_suppressions(out, "valgrind")
    assert "fun:_ZN2ns3dso4makeEi*\n" in out.getvalue()
    assert "ns::dso::make" not in out.getvalue() and "not known here" not in out.getvalue()
    assert [options.demangle for options in asked] == [False]
    out = io.StringIO()
    report.write_suppressions(out, "lsan")
    assert "ns::dso::make(int)" in out.getvalue()
    assert len(asked) == 1
    ids = [leak.id for leak in report.leaks]
    assert ids == [leak.id for leak in report_of(snapshot, written).leaks]


def test_who_wants_names_as_linked_has_them() -> None:
    snapshot, made = server()
    linked = renamed(made.symbols, {"dso__new": "_ZN2ns3dso4makeEi"})
    options = JudgeOptions(demangle=False)
    out = io.StringIO()
    report_of(snapshot, linked, options, named_again=lambda _: {}).write_suppressions(out, "valgrind")
    assert "fun:_ZN2ns3dso4makeEi\n" in out.getvalue()


def test_frames_that_are_others_now_keep_their_names() -> None:
    """The binary may be another one, or gone, when the recording is read."""
    frame = Frame("ns::f(int)", "p", "/p", address=16)
    inlined = (replace(frame, inlined=True), frame)
    assert linked_names({1: (frame,)}, {}) == {}
    assert linked_names({1: inlined}, {1: (replace(frame, function="_ZN2ns1fEi"),)}) == {}
    assert linked_names({1: (frame,)}, {1: (replace(frame, function=None),)}) == {}
    assert linked_names({1: (frame,)}, {1: (replace(frame, function="_ZN2ns1fEi"),)}) == {
        ("/p", 16, "ns::f(int)"): "_ZN2ns1fEi"
    }
