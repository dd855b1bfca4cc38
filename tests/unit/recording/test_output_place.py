"""Where output goes: through links of one's own only, and never over what somebody laid in the way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracer.errors import CannotWrite
from tracer.pipeline.report_file import report_file
from tracer.recording.chunk_file import open_file
from tracer.recording.output_place import check_writable, output_place


def write_report(path: Path) -> None:
    with report_file(path) as stream:
        stream.write(b"new")


def write_recording(path: Path) -> None:
    with open_file(path, True) as file:
        file.write(b"new")


WRITERS = pytest.mark.parametrize("write", [write_report, write_recording])


@WRITERS
def test_links_of_ones_own(tmp_path: Path, write: object) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/other")
    (tmp_path / "folder/other").symlink_to("file")
    assert callable(write)
    write(tmp_path / "link")
    assert (tmp_path / "folder/file").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink() and (tmp_path / "folder/other").is_symlink()
    assert len(list((tmp_path / "folder").iterdir())) == 2


def test_a_check_leaves_everything_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("nothing")
    (tmp_path / "old").write_bytes(b"old")
    before = sorted(tmp_path.iterdir())
    for name in ("dangling", "old", "new"):
        check_writable(tmp_path / name)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "dangling").is_symlink() and (tmp_path / "old").read_bytes() == b"old"


def test_a_circle_of_links(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises((CannotWrite, OSError)):
        check_writable(tmp_path / "circle")


def test_devices_and_open_files_are_written_as_they_are(tmp_path: Path) -> None:
    for path in (Path("/dev/stdout"), Path("/dev/null"), Path(f"/proc/{os.getpid()}/fd/0")):
        place = output_place(path)
        assert place == path or str(place).startswith(("/proc/", "/dev/"))
    (tmp_path / "device").symlink_to("/dev/null")
    write_report(tmp_path / "device")
    with open(tmp_path / "given", "wb") as given:
        write_report(Path(f"/proc/self/fd/{given.fileno()}"))
    assert (tmp_path / "given").read_bytes() == b"new"


@WRITERS
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make what is another user's")
def test_root_follows_no_link_of_another_user(tmp_path: Path, write: object) -> None:
    assert callable(write)
    (tmp_path / "precious").write_bytes(b"old")
    (tmp_path / "link").symlink_to("precious")
    (tmp_path / "dangling").symlink_to("nothing")
    for name in ("link", "dangling"):
        os.lchown(tmp_path / name, 65534, 65534)
        with pytest.raises(CannotWrite, match="link of another user's"):
            write(tmp_path / name)
        with pytest.raises(CannotWrite, match="link of another user's"):
            check_writable(tmp_path / name)
    assert (tmp_path / "precious").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 3
