"""Names from outside: nothing in them commands a terminal, forges a line or turns what follows, in any format."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from full_snapshot import full_snapshot
from hypothesis import given
from hypothesis import strategies as st

from tracer.analysis.analysis import analyse
from tracer.cli.main import main
from tracer.model.findings import Findings
from tracer.model.frames import Frame
from tracer.model.snapshot import Loss, Unresolved
from tracer.model.visible import shortened, visible
from tracer.recording.recording import Info
from tracer.recording.writer import RecordingWriter
from tracer.report.formats import FORMATS, ReportOptions, write_to_file
from tracer.report.suppression_text import write_suppressions

HOSTILE = "a\x1b[31m\x07b\nrefleak: clean, complete\r\x9b1mc\u2028d\u202ee\x7f\udcff"
SHOWN = r"a\x1b[31m\x07b\x0arefleak: clean, complete\x0d\x9b1mc\u2028d\u202ee\x7f\xff"
COMMANDING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
PYTHON = (sys.executable, "-m", "tracer.cli.main")


def test_what_commands_is_shown_as_its_number() -> None:
    assert visible(HOSTILE) == SHOWN
    assert visible("operator new(unsigned long)") == "operator new(unsigned long)"
    assert visible("naïve::größe<日本>\u00a0x") == "naïve::größe<日本>\u00a0x"


@given(st.text())
def test_what_is_shown_stays_so_and_has_one_line(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    assert len(shown.splitlines()) <= 1
    assert not COMMANDING.search(shown)
    shown.encode()


def test_a_long_text_keeps_both_ends() -> None:
    text = "begin" + "x" * 20_000 + "end"
    assert len(shortened(text)) < 350
    assert shortened(text).startswith("begin") and shortened(text).endswith("end")
    assert shortened("short") == "short"


def hostile_findings() -> Findings:
    snapshot, symbols = full_snapshot()
    frame = Frame(HOSTILE, HOSTILE, f"/{HOSTILE}", None, f"/{HOSTILE}.c", 7, why_unknown=HOSTILE, language=HOSTILE)
    snapshot = replace(
        snapshot, types=dict.fromkeys(snapshot.types, HOSTILE), notes=(HOSTILE,), losses=(Loss(HOSTILE, 3, HOSTILE),),
        sites=tuple(replace(site, function=HOSTILE, module=HOSTILE) for site in snapshot.sites),
        binaries=tuple(replace(binary, path=f"/{HOSTILE}") for binary in snapshot.binaries),
        processes=tuple(replace(p, command=("sh", "-c", HOSTILE), executable=HOSTILE) for p in snapshot.processes),
        coverage=replace(snapshot.coverage, unresolved=(Unresolved("get", HOSTILE, HOSTILE, HOSTILE),)),
    )
    return analyse(snapshot, {key: (frame,) * len(frames) for key, frames in symbols.items()})


@pytest.mark.parametrize("format_", [f for f in FORMATS if f.write is not None], ids=lambda f: f.name)
def test_no_format_lets_a_name_command_or_forge_a_line(format_) -> None:  # type: ignore[no-untyped-def]
    file = io.BytesIO()
    write_to_file(format_, hostile_findings(), file, ReportOptions())
    text = file.getvalue().decode()
    if format_.name == "html":  # its own code has controls of its own
        text = text.partition("<script")[0]
    assert not COMMANDING.search(text)
    assert not re.search("^refleak: clean", text, re.M)


@pytest.mark.parametrize("syntax", ["lsan", "valgrind"])
def test_suppressions_are_lines_of_their_own(syntax: str) -> None:
    stream = io.StringIO()
    write_suppressions(hostile_findings(), stream, syntax)
    assert stream.getvalue()
    assert not COMMANDING.search(stream.getvalue())
    assert not re.search("^refleak: clean", stream.getvalue(), re.M)


@pytest.mark.parametrize(
    "words",
    [
        ["-p", HOSTILE], ["--exec", HOSTILE], ["report", HOSTILE], ["--fail-on", HOSTILE, "-p", "1"], [HOSTILE],
        ["discover", HOSTILE], ["diff", HOSTILE, HOSTILE], ["--type", HOSTILE, "-p", "1"], ["specs", HOSTILE],
        ["--spec", HOSTILE, "-p", "1"], ["probes", HOSTILE], ["--user", HOSTILE, "--exec", "true"],
        ["-o", HOSTILE + "/x", "-p", "1"], ["--suppressions", HOSTILE, "-p", "1"], ["--preset", HOSTILE, "-p", "1"],
    ],
)  # fmt: skip
def test_messages_show_what_the_user_wrote_in_a_short_line(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word + "y" * 20_000 if word == HOSTILE else word for word in words]) > 0
    message = capsys.readouterr().err
    assert not COMMANDING.search(message)
    assert "Traceback" not in message and "failed by itself" not in message
    assert message.count("\n") <= 3
    assert max(map(len, message.splitlines())) < 800


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    writer = RecordingWriter(tmp_path / "run.refleak", Info())
    writer.write_snapshot(*full_snapshot())
    writer.close()
    return tmp_path / "run.refleak"


@pytest.mark.parametrize("words", [(), ("--format", "json")])
@pytest.mark.parametrize("stream", [">/dev/full", ">&-", ">&- 2>&-", ">/dev/full 2>/dev/full"])
def test_a_report_that_could_not_be_written_is_told_by_the_status(
    words: tuple[str, ...], stream: str, recording: Path
) -> None:
    script = f'exec "$@" {stream}'
    command = ["sh", "-c", script, "sh", *PYTHON, "report", str(recording), *words]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "80"})
    assert result.returncode == 74
    assert "Traceback" not in result.stderr and "Exception ignored" not in result.stderr
    assert ("cannot write" in result.stderr) is ("2>" not in stream)


@pytest.mark.parametrize("stream", ["2>/dev/full", "2>&-"])
def test_an_error_that_could_not_be_said_keeps_its_status(stream: str) -> None:
    command = ["sh", "-c", f'exec "$@" {stream}', "sh", *PYTHON, "report", "/nowhere"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (75, "")

