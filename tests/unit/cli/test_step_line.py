"""The lines on a terminal that say what goes on: in one row, and without counts of what is not looked at."""

from __future__ import annotations

import io
import sys

import pytest

from tracer.api import Progress
from tracer.cli.main import main
from tracer.cli.status_line import StatusLine
from tracer.cli.step_line import StepLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def rows(self) -> list[str]:
        return [row.removesuffix("\x1b[K") for row in self.getvalue().split("\r")[1:]]


@pytest.mark.parametrize(("columns", "room"), [("40", 39), ("72", 71), ("200", 79)])
def test_a_step_takes_one_row(monkeypatch: pytest.MonkeyPatch, columns: str, room: int) -> None:
    """What went on in a second row was not cleared."""
    monkeypatch.setenv("COLUMNS", columns)
    terminal = Terminal()
    line = StepLine(terminal)
    line.show("compiling the BPF programs, which is done once for each kernel and version of refleak")
    line.clear()
    shown, cleared = terminal.rows()
    assert (len(shown), cleared) == (room, "")


@pytest.mark.parametrize(
    ("events", "columns", "said"),
    [
        (0, "80", "refleak: 3 s, 0 lost; Ctrl-C ends the trace"),
        (17, "80", "refleak: 3 s, 17 reference events, 0 lost; Ctrl-C ends the trace"),
        (17, "40", "refleak: 3 s, 17 reference events, 0 lo"),
    ],
)
def test_the_status_has_no_count_of_what_is_not_seen(
    monkeypatch: pytest.MonkeyPatch, events: int, columns: str, said: str
) -> None:
    """It said `0 reference events` of every trace of malloc and free."""
    monkeypatch.setenv("COLUMNS", columns)
    terminal = Terminal()
    StatusLine(terminal, enabled=True).show(lambda: Progress(3_000_000_000, events, 0))
    assert terminal.rows() == [said]


@pytest.mark.parametrize(
    ("words", "steps"),
    [
        (["probes", "true"], ["refleak: looking for functions ..."]),
        (["discover", "/bin/true"], ["refleak: reading true ..."]),
        (["doctor"], ["refleak: looking at the kernel ...", "refleak: loading the BPF programs ...",
                      "refleak: tracing a child ..."]),
    ],
)  # fmt: skip
def test_what_takes_seconds_says_what_it_does(
    monkeypatch: pytest.MonkeyPatch, words: list[str], steps: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    main(words)
    assert terminal.rows()[: 2 * len(steps) : 2] == steps
    assert terminal.getvalue().count("\r\x1b[K") == len(steps)


def test_nothing_of_it_is_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probes", "true"]) == 0
    assert capsys.readouterr().err == ""
