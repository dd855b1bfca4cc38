"""A report is written whole or not at all."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import pytest

from tracer.errors import CannotWrite
from tracer.pipeline.report_file import report_file


def test_the_file_appears_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "report"
    with report_file(path) as stream:
        stream.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupt_as_the_file_is_made_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = os.open

    def interrupted(path: Path, flags: int, mode: int) -> int:
        made = make(path, flags, mode)
        signal.raise_signal(signal.SIGINT)
        return made

    monkeypatch.setattr(os, "open", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), report_file(tmp_path / "report"):
            pass
    finally:
        signal.signal(signal.SIGINT, before)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_the_old_one_and_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), report_file(path) as stream:
        stream.write(b"new")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_mode_is_kept_or_that_of_new_files(tmp_path: Path) -> None:
    old, new, usual = tmp_path / "old", tmp_path / "new", tmp_path / "usual"
    old.touch()
    old.chmod(0o640)
    usual.touch()
    for path in (old, new):
        with report_file(path) as stream:
            stream.write(b"x")
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert new.stat().st_mode == usual.stat().st_mode


def test_a_link_is_followed(tmp_path: Path) -> None:
    path, link = tmp_path / "report", tmp_path / "link"
    link.symlink_to(path)
    for text in (b"one", b"two"):
        with report_file(link) as stream:
            stream.write(text)
        assert link.is_symlink()
        assert path.read_bytes() == text


def test_what_is_no_file_is_written_in_place(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    with report_file(fifo) as stream:
        stream.write(b"text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_full_disk_is_said_in_one_line() -> None:
    with pytest.raises(CannotWrite, match="cannot write /dev/full: No space left on device"), report_file(
        Path("/dev/full")
    ) as stream:
        stream.write(b"x" * 100_000)


def test_a_missing_directory_is_said(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match="No such file or directory"), report_file(tmp_path / "no" / "report"):
        pass
