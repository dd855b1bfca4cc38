"""Which folders and files a cache is made of, and which are refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tracer.files import cache_folder
from tracer.files.cache_folder import Refused, open_folder, read_own, write_own


@pytest.fixture
def folder(private_folders: Callable[[], Path]) -> Iterator[Path]:
    made = private_folders()
    yield made
    made.chmod(0o700)
    cache_folder.refusals.clear()


def is_refused(path: Path, why: str) -> bool:
    with pytest.raises(Refused, match=why):
        os.close(open_folder(path, create=True))
    return any(why in reason for reason in cache_folder.refusals)


def test_what_is_written_is_read(folder: Path) -> None:
    write_own(folder / "a/b", b"one", b"two")
    assert read_own(folder / "a/b") == b"onetwo"
    assert ((folder / "a").stat().st_mode & 0o777, (folder / "a/b").stat().st_mode & 0o777) == (0o700, 0o600)
    assert [path.name for path in (folder / "a").iterdir()] == ["b"]
    assert cache_folder.refusals == {}


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o1777])
def test_a_folder_that_others_may_write_to(folder: Path, mode: int) -> None:
    write_own(folder / "file", b"good")
    folder.chmod(mode)
    assert is_refused(folder, "others can" if os.geteuid() == 0 else "by others")
    with pytest.raises(Refused):
        read_own(folder / "file")
    with pytest.raises(Refused):
        write_own(folder / "file", b"other")


def test_a_file_that_is_not_ours_alone(folder: Path) -> None:
    for name in ("writable", "link", "pipe"):
        write_own(folder / name, b"good")
    (folder / "writable").chmod(0o666)
    (folder / "link").unlink()
    (folder / "link").symlink_to("writable")
    (folder / "pipe").unlink()
    os.mkfifo(folder / "pipe")
    for name, why in (("writable", "written by others"), ("link", "link"), ("pipe", "no plain file")):
        with pytest.raises(Refused, match=why):
            read_own(folder / name)
        write_own(folder / name, b"anew")  # in its place, not through it
        assert read_own(folder / name) == b"anew"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make what is another user's")
class TestOfRoot:
    def test_another_users_folder_or_file(self, folder: Path) -> None:
        write_own(folder / "x/file", b"theirs")
        os.chown(folder / "x/file", 65534, 65534)
        with pytest.raises(Refused, match="another user's"):
            read_own(folder / "x/file")
        os.chown(folder / "x", 65534, 65534)
        assert is_refused(folder / "x", "another user's")
        assert is_refused(folder / "x/below", "another user's")
        assert not (folder / "x/below").exists()

    def test_a_folder_above_that_others_may_write_to(self, folder: Path, tmp_path: Path) -> None:
        (folder / "above/cache").mkdir(parents=True, mode=0o700)
        (folder / "above").chmod(0o1777)
        assert is_refused(folder / "above/cache", "below a folder that others can write to")
        assert is_refused(tmp_path / "cache", "below a folder that others can write to")  # /tmp
        assert not (tmp_path / "cache").exists()

    def test_links_of_roots_are_followed_and_no_others(self, folder: Path) -> None:
        write_own(folder / "real/file", b"ours")
        (folder / "link").symlink_to(folder / "real")
        (folder / "relative").symlink_to("./link/../link")
        assert read_own(folder / "relative/file") == b"ours"
        (folder / "open").mkdir()
        (folder / "open").chmod(0o777)
        (folder / "open/theirs").symlink_to(folder / "real")
        (folder / "through").symlink_to("open/theirs")
        assert is_refused(folder / "through", "below a folder that others can write to")
        (folder / "circle").symlink_to("circle")
        with pytest.raises(OSError):
            open_folder(folder / "circle")
