"""What a program starts with, where it cannot be looked at."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracer.binaries.open_binaries import Binaries
from tracer.binaries.start_up import start_up_binaries


def test_what_is_no_plain_file_is_nothing(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (str(pipe), str(tmp_path), str(tmp_path / "missing")):
        assert start_up_binaries(Binaries(), path, path) == []


def test_what_may_not_be_looked_at_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even root may look into another user's mount."""

    def refuse(self: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "is_file", refuse)
    assert start_up_binaries(Binaries(), "/bin/true", "/bin/true") == []


def test_a_script_whose_interpreter_is_a_pipe(tmp_path: Path) -> None:
    pipe, script = tmp_path / "pipe", tmp_path / "script"
    os.mkfifo(pipe)
    script.write_text(f"#!{pipe}\n")
    assert start_up_binaries(Binaries(), str(script), "script") == []
