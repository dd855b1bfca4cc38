"""Reports while a trace goes on: what they say, where they go, and the copy of refleak that makes them."""

from __future__ import annotations

import io
import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hand_made import SECOND, blocks, server

from tracer.analysis import analyse
from tracer.analysis.comparison import compare
from tracer.capture.session import Session
from tracer.cli.interval import numbered
from tracer.cli.standard_streams import complain
from tracer.errors import CannotRead
from tracer.model.findings import Findings
from tracer.model.snapshot import Snapshot
from tracer.pipeline import analyst
from tracer.pipeline.analyst import Analyst
from tracer.report.interval_report import write_interval, write_interval_json


def twice() -> tuple[Findings, Findings]:
    """A page more, a block of 72 bytes gone, the rest as it was."""
    snap, code = server()
    rows = snap.allocations
    later = rows[rows["size"] != 72]
    page = blocks({"address": 0xF000, "size": 4096, "time_ns": 9 * SECOND, "stack": 1})
    after = replace(snap, allocations=np.concatenate([later, page]), duration_ns=70 * SECOND)
    return analyse(snap, code.symbols), analyse(after, code.symbols)


def test_the_text_has_what_changed_first() -> None:
    before, after = twice()
    stream = io.StringIO()
    write_interval(3, after, compare(before, after), stream, top=3)
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("refleak: 3: outstanding after 70.0 s: 2 objects of 1 type,")
    table = lines[lines.index("          bytes      count  change") + 1 :]
    assert [line.split()[:4] for line in table] == [
        ["32,768", "8", "+1", "parse_body"], ["0", "0", "gone", "malloc"], ["1,048,576", "1", "=", "arena__map"],
        ["and", "3", "more", "entries"],
    ]  # fmt: skip
    assert max(map(len, lines)) <= 80


def test_each_json_document_is_one_line() -> None:
    before, after = twice()
    stream = io.StringIO()
    write_interval_json(2, after, compare(before, after), stream)
    (line,) = stream.getvalue().splitlines()
    document = json.loads(line)
    assert (document["format"], document["number"], document["time_ns"]) == ("refleak-interval", 2, 70 * SECOND)
    assert sum(entry["count"] for entry in document["outstanding"]) == 2 + 8 + 1 + 1
    difference = document["difference"]
    assert [(c["before"]["count"], c["after"]["count"]) for c in difference["grown"]] == [(7, 8)]
    assert (len(difference["gone"]), difference["new"], difference["same"]) == (1, [], 4)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("out/leaks.json", "out/leaks.0007.json"), ("leaks.speedscope.json", "leaks.0007.speedscope.json"),
        ("leaks", "leaks.0007"), ("run.refleak", None),
    ],
)  # fmt: skip
def test_the_files_are_numbered(output: str, expected: str | None) -> None:
    assert numbered(Path(output), 7) == (None if expected is None else Path(expected))
    assert numbered(None, 7) is None


class _Session:
    """All that an Analyst asks of a session before it forks."""

    clock = SimpleNamespace(duration_ns=5 * SECOND)

    def __init__(self) -> None:
        self.drained = 0

    def drain(self) -> None:
        self.drained += 1


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Callable[[Analyst, analyst.Job], None]:
    monkeypatch.setattr(analyst, "take_snapshot", lambda *_, **__: server()[0])
    session = _Session()
    return lambda one, job: one.start(cast(Session, session), job)


def test_each_job_is_given_what_the_last_returned(start: Callable[[Analyst, analyst.Job], None]) -> None:
    one = Analyst()

    def job(snapshot: Snapshot, before: Any) -> Any:
        return [*(before or []), len(snapshot.allocations), os.getpid()]

    start(one, job)
    one.stop()
    start(one, job)
    one.stop()
    first, pid, second, other = one.result()
    assert first == second == 9  # of ten blocks, the one made after 6 s is left out
    assert len({pid, other, os.getpid()}) == 3
    assert not one.busy


def test_a_job_that_fails_leaves_what_was_known(
    start: Callable[[Analyst, analyst.Job], None], capfd: pytest.CaptureFixture[str]
) -> None:
    one = Analyst(complain)

    def fails(_: Snapshot, __: Any) -> Any:
        raise CannotRead("no such thing")

    start(one, lambda _, __: "known")
    one.stop()
    start(one, fails)
    one.stop()
    assert one.result() == "known"
    assert capfd.readouterr().err == "refleak: no such thing\n"


def test_a_job_can_be_ended(start: Callable[[Analyst, analyst.Job], None]) -> None:
    one = Analyst()
    start(one, lambda _, __: signal.pause())
    assert one.busy
    one.stop(at_once=True)
    assert not one.busy and one.result() is None
