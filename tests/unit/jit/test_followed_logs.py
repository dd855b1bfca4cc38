"""The logs of one process as files: which ones are read, and what comes of their growing."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracer.jit.followed_logs import FollowedLogs
from tracer.jit.temporary_folders import TemporaryFolder
from tracer.procfs.growing_file import GrowingFile
from tracer.procfs.maps import read_maps
from tracer.procfs.process import Credentials, credentials

NOW_NS = 1_000_000_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[TemporaryFolder]:
    fd = os.open(tmp_path, os.O_PATH)
    yield TemporaryFolder(fd)
    os.close(fd)


def logs(folder: TemporaryFolder, started_ns: int = 0, user: int | None = None) -> FollowedLogs:
    who = Credentials(42, os.geteuid() if user is None else user, started_ns)
    return FollowedLogs(os.getpid(), who, folder, NOW_NS)


def name_at(of: FollowedLogs, address: int, time_ns: int) -> str | None:
    function = of.find(address, time_ns, time_ns).function
    return function.name if function else None


def test_a_map_is_found_by_the_inner_number_and_read_as_it_grows(tmp_path: Path, folder: TemporaryFolder) -> None:
    followed, path = logs(folder), tmp_path / "perf-42.map"
    assert not followed.open_map() and not followed.has_any
    path.write_text("1000 10 first\n2000 1")
    assert followed.open_map() and followed.has_map
    assert followed.read(NOW_NS + 10) == ([], False)
    with path.open("a") as file:
        file.write("0 other\n1008 10 second\n")
    replaced, more = followed.read(NOW_NS + 20)
    assert ([function.name for function in replaced], more) == (["first"], False)
    assert [name_at(followed, a, t) for a, t in ((0x1008, NOW_NS + 10), (0x1008, NOW_NS + 20), (0x2000, NOW_NS + 20))] \
        == ["first", "second", "other"]  # fmt: skip
    assert followed.find(0x1008, NOW_NS + 10, NOW_NS + 20).candidates == ("first", "second")


def test_a_map_survives_its_deletion(tmp_path: Path, folder: TemporaryFolder) -> None:
    followed, path = logs(folder), tmp_path / "perf-42.map"
    path.write_text("")
    assert followed.open_map()
    with path.open("a") as file:
        path.unlink()
        file.write("1000 10 f\n")
    followed.read(NOW_NS)
    followed.close()
    assert name_at(followed, 0x1000, NOW_NS) == "f"


def test_a_map_that_is_cut_is_read_from_its_start(tmp_path: Path, folder: TemporaryFolder) -> None:
    followed, path = logs(folder), tmp_path / "perf-42.map"
    path.write_text("1000 10 of an old time, with a long name\n")
    assert followed.open_map()
    followed.read(NOW_NS)
    path.write_text("3000 10 new\n")
    followed.read(NOW_NS + 1)
    assert name_at(followed, 0x3000, NOW_NS + 1) == "new"


def test_an_older_process_of_this_number_is_not_believed(tmp_path: Path, folder: TemporaryFolder) -> None:
    path = tmp_path / "perf-42.map"
    path.write_text("1000 10 stale\n")
    os.utime(path, ns=(10**18, 10**18))
    assert not logs(folder, started_ns=10**18 + 2 * 10**9).open_map()
    assert logs(folder, started_ns=10**18).open_map()


def test_what_the_program_before_an_exec_wrote_is_passed_over(tmp_path: Path, folder: TemporaryFolder) -> None:
    before, after, path = logs(folder), logs(folder), tmp_path / "perf-42.map"
    path.write_text("1000 10 old\n")
    assert before.open_map()
    before.read(NOW_NS)
    before.close()
    after.passed = before.position()
    with path.open("a") as file:
        file.write("2000 10 new\n")
    assert after.open_map()
    after.read(NOW_NS)
    assert [name_at(after, address, NOW_NS) for address in (0x1000, 0x2000)] == [None, "new"]


def test_only_plain_files_of_the_process_or_root_are_read(
    tmp_path: Path, folder: TemporaryFolder
) -> None:
    path = tmp_path / "perf-42.map"
    os.mkfifo(path)
    assert not logs(folder).open_map()
    path.unlink()
    (tmp_path / "elsewhere").write_text("1000 10 f\n")
    path.symlink_to("elsewhere")
    assert not logs(folder).open_map()
    path.unlink()
    path.write_text("1000 10 f\n")
    assert GrowingFile.open(str(path), (os.geteuid() + 1,)) is None
    assert GrowingFile.open(str(path), (os.geteuid(),)) is not None
    assert GrowingFile.open_mapped(str(tmp_path)) is None


def test_a_child_has_what_its_parent_had_when_it_forked(tmp_path: Path, folder: TemporaryFolder) -> None:
    parent, child = logs(folder), logs(folder)
    (tmp_path / "perf-42.map").write_text("1000 10 before\n")
    assert parent.open_map()
    parent.read(NOW_NS)
    child.parent = parent
    with (tmp_path / "perf-42.map").open("a") as file:
        file.write("1000 10 after\n2000 10 later\n")
    parent.read(NOW_NS + 5)
    assert child.has_any
    assert [name_at(child, 0x1000, NOW_NS + 9), name_at(parent, 0x1000, NOW_NS + 9)] == ["before", "after"]


def test_a_jitdump(tmp_path: Path, folder: TemporaryFolder) -> None:
    def load(start: int, name: bytes, time_ns: int) -> bytes:
        body = struct.pack("<IIQQQQ", 1, 1, start, start, 16, 1) + name + b"\0" + bytes(16)
        return struct.pack("<IIQ", 0, 16 + len(body), time_ns) + body

    move = struct.pack("<IIQIIQQQQQ", 1, 64, NOW_NS + 20, 1, 1, 0x3000, 0x1000, 0x3000, 16, 1)
    path = tmp_path / "jit-42.dump"
    head = struct.pack("<4sIIIIIQQ", b"DTiJ", 1, 40, 62, 0, 42, 0, 0)
    path.write_bytes(head + load(0x1000, b"f", NOW_NS + 10) + move)
    followed = logs(folder)
    followed._dump = GrowingFile.open_mapped(str(path))
    replaced, _ = followed.read(NOW_NS + 100)
    assert [function.name for function in replaced] == ["f"]
    assert [name_at(followed, a, NOW_NS + t) for a, t in ((0x1000, 15), (0x1000, 25), (0x3000, 25))] == ["f", None, "f"]


def test_a_dump_that_cannot_be_read_is_said(tmp_path: Path, folder: TemporaryFolder) -> None:
    path = tmp_path / "jit-42.dump"
    path.write_bytes(b"JiTD" + bytes(60))
    followed = logs(folder)
    followed._dump = GrowingFile.open_mapped(str(path))
    followed.read(NOW_NS)
    assert followed.notes == [f"the jitdump of process {os.getpid()} is not read: big-endian"]


def test_a_dump_is_found_by_its_executable_mapping(tmp_path: Path, folder: TemporaryFolder) -> None:
    followed, path = logs(folder), tmp_path / "jit-42.dump"
    path.write_bytes(bytes(4096))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ):
        assert not followed.open_dump(read_maps(os.getpid()))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC):
        assert followed.open_dump(read_maps(os.getpid()))
    followed.close()


def test_credentials() -> None:
    who = credentials(os.getpid())
    assert who is not None and who.user == os.geteuid() and who.inner_pid == os.getpid()
    assert credentials(1 << 30) is None
