"""Options of refleak behind the command: the command got them, and nobody said so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracer.cli.misplaced_option import misplaced_option

OPTIONS = ("-o", "--output", "--refs-only", "--color", "--fail-on", "--top")


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("written.html").touch()


@pytest.mark.parametrize(
    ("words", "failed", "misplaced"),
    [
        (["./prog", "-o", "report.html"], False, "-o report.html"),
        (["./prog", "x", "--output=run.refleak"], False, "--output run.refleak"),
        (["./prog", "-o", "leaks.pb.gz"], False, "-o leaks.pb.gz"),
        (["./prog", "--refs-only"], True, "--refs-only"),
        (["./prog", "--fail-on=leaks"], True, "--fail-on"),
        (["./prog", "--refs-only"], False, None),
        (["gcc", "-o", "prog", "prog.c"], True, None),
        (["curl", "-o", "written.html", "address"], False, None),
        (["grep", "--color", "x"], True, None),
        (["./prog", "-o"], True, None),
        (["-o", "x.html"], True, None),
    ],
)
def test_what_was_meant_for_refleak(words: list[str], failed: bool, misplaced: str | None) -> None:
    assert misplaced_option(words, OPTIONS, failed) == misplaced
