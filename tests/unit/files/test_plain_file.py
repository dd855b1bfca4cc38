"""Files of others: nothing hangs, nothing but a plain file is read, and no more of it than was said."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path

import pytest

from tracer.binaries.open_binaries import Binaries
from tracer.binaries.start_up import start_up_binaries
from tracer.cli.main import main
from tracer.elf.debug_files import DebugFiles
from tracer.elf.image import Image
from tracer.errors import CannotRead
from tracer.files.plain_file import NotPlain, TooLarge, is_plain, open_plain, read_named, read_plain, read_start
from tracer.model.snapshot import Binary
from tracer.procfs.growing_file import GrowingFile
from tracer.symbols.mismatches import mismatched


@pytest.fixture(params=["pipe", "directory", "device", "terminal", "socket"])
def no_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a path at which something stands that must not be opened."""
    path = tmp_path / "thing"
    match request.param:
        case "pipe":
            os.mkfifo(path)
        case "directory":
            path.mkdir()
        case "device":
            path.symlink_to("/dev/zero")
        case "terminal":
            path.symlink_to("/dev/ptmx")
        case "socket":
            socket.socket(socket.AF_UNIX).bind(str(path))
    return path


def test_nothing_but_a_plain_file_is_opened(no_file: Path) -> None:
    with pytest.raises(NotPlain, match="no plain file"):
        open_plain(no_file)
    assert not is_plain(no_file)
    with pytest.raises(CannotRead, match="no plain file"):
        Image.open(no_file)


def test_what_is_no_file_is_no_binary_of_the_target(no_file: Path) -> None:
    assert Binaries().open([str(no_file)], "program") is None
    assert start_up_binaries(Binaries(), str(no_file), "program") == []
    assert GrowingFile.open_mapped(str(no_file)) is None
    assert GrowingFile.open(str(no_file), (os.getuid(), 0)) is None
    assert "is gone" in mismatched([Binary(1, str(no_file))])[0]


def test_a_debug_file_that_is_none_is_passed_over(no_file: Path) -> None:
    folder = no_file.parent / ".build-id" / "ab"
    folder.mkdir(parents=True)
    (folder / "cdef.debug").symlink_to(no_file)
    assert DebugFiles([str(no_file.parent)]).find("/nowhere", "abcdef", None) is None


def test_a_script_whose_interpreter_is_a_pipe_has_no_binaries(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "script").write_text(f"#!{tmp_path}/pipe\n")
    assert start_up_binaries(Binaries(), str(tmp_path / "script"), "script") == []


@pytest.mark.parametrize(
    "words",
    [
        ["report", "PATH"], ["diff", "PATH", "PATH"], ["discover", "PATH"], ["probes", "--spec", "PATH", "/bin/true"],
        ["--suppressions", "PATH", "--exec", "true"], ["--baseline", "PATH", "--exec", "true"], ["--exec", "PATH"],
        ["probes", "PATH"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_command_says_in_a_line_what_is_no_file(
    words: list[str], no_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main([str(no_file) if word == "PATH" else word for word in words])
    except SystemExit as end:
        status = int(end.code or 0)
    assert status > 0
    message = capsys.readouterr().err
    assert str(no_file) in message
    assert "Traceback" not in message


def test_a_link_is_followed_only_where_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert read_plain(tmp_path / "link", 100) == b"content"
    with pytest.raises(NotPlain, match="a link"):
        open_plain(tmp_path / "link", follow=False)


def test_no_more_is_read_than_the_reader_takes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1000)
    assert read_plain(path, 1000) == b"x" * 1000
    assert read_start(path, 3) == b"xxx"
    with pytest.raises(TooLarge):
        read_plain(path, 999)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["diff", "HOLE", "HOLE"], "is neither a recording nor a JSON report"),
        (["probes", "--spec", "HOLE", "/bin/true"], "is larger than"),
    ],
)  # fmt: skip
def test_a_file_of_nothing_but_a_hole_is_refused(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(20 << 30)
    assert main([str(tmp_path / "hole") if word == "HOLE" else word for word in words]) > 0
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
def test_a_pipe_of_the_shell_is_read_to_its_end(folder: str) -> None:
    opened, writing = os.pipe()
    reading = fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, 2000)
    os.close(opened)
    try:
        os.write(writing, b"leak:keep_*\n")
        os.close(writing)
        assert read_named(f"{folder}/{reading}", 100) == b"leak:keep_*\n"
    finally:
        os.close(reading)


def test_a_pipe_without_an_end_is_given_up() -> None:
    reading, writing = os.pipe()
    try:
        with pytest.raises(TimeoutError, match="did not end within 0 s"):
            read_named(f"/dev/fd/{reading}", 100, seconds=0)
        os.write(writing, bytes(101))
        with pytest.raises(TooLarge):
            read_named(f"/dev/fd/{reading}", 100)
    finally:
        os.close(reading)
        os.close(writing)


def test_a_pipe_that_has_a_name_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotPlain):
        read_named(tmp_path / "pipe", 100)
