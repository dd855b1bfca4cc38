"""What is written to a terminal: through a pager, in colours, and where a file takes the report."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from shutil import which

import pytest
from test_report_command import written

ROOT = Path(__file__).parents[3]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return written(tmp_path / "run.refleak")


def on_terminal(
    words: Sequence[str | Path], folder: Path, keys: bytes = b"", **variables: str
) -> tuple[int, str]:  # fmt: skip
    """Return the exit status, and what came to a terminal of 24 lines and 80 columns, on which `keys` were typed."""
    ours, theirs = os.openpty()
    os.write(ours, keys)
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR", "PAGER")}
    environment = {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm", "LINES": "24", "COLUMNS": "80", **variables}
    command = [sys.executable, "-m", "tracer", *words]
    with subprocess.Popen(
        command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    ) as process:
        os.close(theirs)
        said = b""
        with suppress(OSError):  # at the end nobody has the other side
            while piece := os.read(ours, 65536):
                said += piece
    os.close(ours)
    return process.returncode, said.decode().replace("\r\n", "\n")


def test_what_is_longer_than_the_terminal_goes_through_the_pager(recording: Path) -> None:
    folder = recording.parent
    status, said = on_terminal(["report", recording], folder, PAGER="sh -c 'cat >paged; echo LESS=$LESS'")
    paged = (folder / "paged").read_text()
    assert (status, said.rpartition("\x1b[K")[2]) == (0, "LESS=FRX\n")
    assert paged.startswith("\x1b[1;31mrefleak: LEAK") and paged.count("\n") > 24
    assert on_terminal(["report", recording], folder, PAGER="")[1].endswith(paged)
    assert on_terminal(["report", recording], folder, PAGER="no-such-pager -x")[1].endswith(paged)
    assert on_terminal(["report", recording], folder, PAGER="true")[0] == 0


@pytest.mark.parametrize("options", ["", "-i", "FX", "iMx4", "--ignore-case", "FXPrefleak's prompt$"])
def test_colours_pass_through_less_with_options_of_its_user(recording: Path, options: str) -> None:
    if which("less") is None:
        pytest.skip("needs less")
    _, said = on_terminal(["report", recording], recording.parent, b"q", PAGER="less", LESS=options)
    assert "LEAK" in said and "ESC" not in said
    assert "\x1b[1;31mrefleak: LEAK" in said


def test_what_is_short_and_what_is_no_text_goes_to_the_terminal(recording: Path) -> None:
    folder = recording.parent
    pager = "sh -c 'cat >paged'"
    assert on_terminal(["diff", recording, recording], folder, PAGER=pager)[1].endswith("not worse: 6 same\x1b[0m\n")
    assert on_terminal(["report", recording, "--format", "json"], folder, PAGER=pager)[1].endswith("}\n")
    assert not (folder / "paged").exists()


def test_a_report_that_goes_to_a_file_is_told_of(recording: Path) -> None:
    folder = recording.parent
    said = on_terminal(["report", recording, "-o", "x.html"], folder)[1].rpartition("\x1b[K")[2]
    assert said.startswith("\x1b[1;31mrefleak: LEAK: 2 objects of 1 type")
    assert said.endswith("refleak: the report is in x.html\n")
    assert on_terminal(["report", recording, "-q", "-o", "x.html"], folder) == (0, "")
    said = on_terminal(["diff", recording, recording, "-o", "x.html"], folder)[1]
    assert said == "\x1b[1;32mrefleak: not worse: 6 same\x1b[0m\nrefleak: the report is in x.html\n"


def test_colours_and_width_as_asked_for(recording: Path) -> None:
    def plain(*words: str) -> str:
        command = [sys.executable, "-m", "tracer", "report", recording, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout

    assert "\x1b[" not in plain()
    assert plain("--color", "always").startswith("\x1b[1;31mrefleak: LEAK")
    assert max(map(len, plain("--width", "200").splitlines())) > 100
    narrow = plain("--width", "50").splitlines()
    assert "refleak: LEAK: 2 objects of 1 type, 28.1 KiB in 9" in narrow
    said = on_terminal(["report", recording, "--color", "never"], recording.parent, PAGER="cat")[1]
    assert "\x1b[1" not in said
