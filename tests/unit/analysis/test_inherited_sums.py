"""What forked children have of their parents, where only sums of it are read."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hand_made import Code, blocks, process, snapshot

from tracer.analysis import AnalysisOptions, analyse
from tracer.analysis import allocations as module
from tracer.cli.main import command_module
from tracer.cli.parsing import parse
from tracer.cli.reporting import judging_for
from tracer.model.findings import Findings
from tracer.model.selection import Selection
from tracer.report.text import write_text

SUMMED = AnalysisOptions(sums_inherited=True)


def found(options: AnalysisOptions, sample_bytes: int = 0) -> Findings:
    """Judge a parent with a block, and two children with copies of two stacks, one of them with a block of its own."""
    code = Code()
    first, second = (code.stack(n, code.frame(f"make_{n}", f"srv.c:{n}")) for n in (1, 2))
    rows = [
        {"address": 16 * n, "size": 100 + n, "stack": (first, second)[n % 2], "pid": 813 + n % 3 % 2}
        for n in range(1, 9)
    ]
    own = {"address": 16, "size": 8, "stack": first}, {"address": 32, "size": 9, "stack": second, "pid": 814}
    children = tuple(process(pid, parent=812, forked_from=(812, 1)) for pid in (813, 814))
    whole = snapshot(
        code, processes=(process(), *children), inherited=blocks(*rows), allocations=blocks(*own),
    )  # fmt: skip
    return analyse(replace(whole, selection=Selection(sample_bytes=sample_bytes)), code.symbols, options)


def said(findings: Findings) -> str:
    stream = io.StringIO()
    write_text(findings, stream)
    return stream.getvalue()


@pytest.mark.parametrize("sample_bytes", [0, 256])
def test_the_text_is_the_same(monkeypatch: pytest.MonkeyPatch, sample_bytes: int) -> None:
    listed = found(SUMMED, sample_bytes)
    assert sum(leak.state == "inherited" for leak in listed.leaks) == 4, "of few blocks all is told"
    monkeypatch.setattr(module, "_MANY", 8)
    summed = found(SUMMED, sample_bytes)
    inherited = [leak for leak in summed.leaks if leak.state == "inherited"]
    assert sorted(leak.space for leak in inherited) == [(813, 1), (814, 1)]
    assert said(summed) == said(listed) == said(found(AnalysisOptions(), sample_bytes))
    assert sum(leak.state == "inherited" for leak in found(AnalysisOptions(), sample_bytes).leaks) == 4


@pytest.mark.parametrize(("words", "sums"), [
    ((), True), (("-o", "a.txt"), True), (("-o", "a.xml"), True), (("-o", "a.json"), False), (("-o", "a.html"), False),
    (("--format", "json"), False),
])  # fmt: skip
def test_only_json_and_the_page_have_more_than_sums(words: tuple[str, ...], sums: bool) -> None:
    arguments = parse("report", command_module("report"), [*words, "run.refleak"])
    assert judging_for(arguments).sums_inherited is sums
