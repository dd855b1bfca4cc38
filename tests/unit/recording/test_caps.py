"""What others write as large as they like is read up to a size, and in a time that does not grow with its square."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from full_snapshot import full_snapshot
from hang_guard import no_hang
from hypothesis import given
from hypothesis import strategies as st

from tracer.binaries.open_binaries import Binaries
from tracer.elf.image import SHF_COMPRESSED, Image, Section
from tracer.errors import CannotRead, UnsuitableTarget
from tracer.jit import code_log, followed_logs, jit_interface
from tracer.jit.code_log import CodeLog, GeneratedFunction
from tracer.jit.followed_logs import FollowedLogs
from tracer.jit.jit_image import _code
from tracer.jit.jit_interface import JitInterface
from tracer.jit.jitdump import CodeLoaded, JitdumpReader
from tracer.jit.temporary_folders import TemporaryFolder
from tracer.procfs.process import Credentials
from tracer.recording import reader
from tracer.recording.chunks import ChunkType, encode_chunk, file_header
from tracer.recording.reader import read_recording
from tracer.recording.recording import Info
from tracer.recording.writer import RecordingWriter


def function(number: int, start: int, size: int) -> GeneratedFunction:
    return GeneratedFunction(start, start + size, f"f{number}", 2 * number, 2 * number + 1)


@pytest.mark.parametrize(
    ("count", "step", "size"),
    [(1000, 0, 1 << 28), (1000, 4096, 1 << 28), (200_000, 0, 16), (200_000, 1, 4096), (20_000, 1, 64 << 12)],
)
def test_overlapping_lines_take_no_time_that_grows_with_their_square(count: int, step: int, size: int) -> None:
    log = CodeLog()
    with no_hang():
        replaced = [len(log.add(function(i, 0x10000 + i * step, size))) for i in range(count)]
    assert len(log) + log.lost == count
    assert replaced[0] == 0
    assert replaced[1] == 1
    last = len(log) - 1
    assert log.find(0x10000 + last * step, 1 << 40, 1 << 40).function is not None


@given(st.lists(st.tuples(st.integers(0, 600), st.integers(1, 600), st.sampled_from("ab")), max_size=20))
def test_what_is_replaced_is_what_was_last_anywhere_in_the_range(entries: list[tuple[int, int, str]]) -> None:
    """Pages of 64 functions, large ones among them: against one number for each page."""
    log = CodeLog()
    last: dict[int, int] = {}
    made: list[GeneratedFunction] = []
    for start, pages, name in entries:
        new = GeneratedFunction(start << 12, start + pages << 12, name, 0, 0)
        there = {last[page] for page in range(start, start + pages) if page in last}
        assert log.add(new) == tuple(made[n] for n in sorted(there) if made[n].name != name)
        last.update(dict.fromkeys(range(start, start + pages), len(made)))
        made.append(new)


def test_names_that_would_fill_memory_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_log, "MOST_NAME_BYTES", 1000)
    log = CodeLog()
    for i in range(10):
        log.add(GeneratedFunction(i << 12, (i << 12) + 16, "n" * 300, 0, 1))
    assert (len(log), log.lost) == (4, 6)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[TemporaryFolder]:
    fd = os.open(tmp_path, os.O_PATH)
    yield TemporaryFolder(fd)
    os.close(fd)


def read_all(logs: FollowedLogs) -> int:
    looks = 1
    with no_hang():
        while logs.read(1)[1]:
            looks += 1
    return looks


@pytest.mark.parametrize("content", [b"", b"x\n", b"1000 10 first\n"])
def test_a_perf_map_that_is_a_hole_is_given_up(content: bytes, tmp_path: Path, folder: TemporaryFolder) -> None:
    with (tmp_path / "perf-42.map").open("wb") as file:
        file.write(content)
        file.truncate(20 << 30)
    logs = FollowedLogs(os.getpid(), Credentials(42, os.geteuid(), 0), folder, 0)
    assert logs.open_map()
    assert read_all(logs) <= followed_logs.MOST_OF_MAP // (1 << 18) + 1
    assert logs.map_log.lost == 1
    assert logs.notes == [f"the perf map of process {os.getpid()} is too long: only its beginning was read"]
    assert not logs.open_map()
    assert (len(logs.map_log) == 1) is content.startswith(b"1000")


def test_a_perf_map_of_garbage_is_given_up(
    tmp_path: Path, folder: TemporaryFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_logs, "MOST_MALFORMED", 1000)
    (tmp_path / "perf-42.map").write_bytes(b"x\n" * (1 << 18))
    logs = FollowedLogs(os.getpid(), Credentials(42, os.geteuid(), 0), folder, 0)
    logs.open_map()
    read_all(logs)
    assert logs.map_log.lost == 1


HEADER = struct.pack("<4sIIIIIQQ", b"DTiJ", 1, 40, 62, 0, 1, 0, 0)


def test_a_record_that_comes_in_pieces_is_not_copied_with_each() -> None:
    reader = JitdumpReader()
    body = struct.pack("<IIQQQQ", 1, 1, 0, 0x1000, 16, 1) + b"name\0"
    size = 1 << 26
    record = struct.pack("<IIQ", 0, size, 5) + body.ljust(size - 16, b"\0")
    found: list[object] = []
    with no_hang():
        for at in range(0, size, 1 << 12):
            found += reader.feed((HEADER if at == 0 else b"") + record[at : at + (1 << 12)])
    assert found == [CodeLoaded(5, 0x1000, 16, "name")]


def test_a_name_without_end_is_cut() -> None:
    body = struct.pack("<IIQQQQ", 1, 1, 0, 0x1000, 16, 1) + b"n" * 100_000 + b"\0"
    (found,) = JitdumpReader().feed(HEADER + struct.pack("<IIQ", 0, 16 + len(body), 5) + body)
    assert isinstance(found, CodeLoaded)
    assert len(found.name) == 4096


def test_images_of_a_jit_are_kept_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty of 60 MB took 1.9 GB."""
    monkeypatch.setattr(jit_interface, "MOST_IMAGE_BYTES", 1 << 20)
    size = 300 << 10
    data = b"\x7fELF\x02\x01".ljust(64, b"\0").ljust(size, b"\0")
    monkeypatch.setattr(jit_interface, "read_memory", lambda _pid, _address, length: data[:length])
    made = SimpleNamespace(name="[jit] f", image=Image(data), code=((0x1000, 0x2000),), bias=0, table=None)
    monkeypatch.setattr(jit_interface, "read_jit_image", lambda *_: made)
    spaces: Any = SimpleNamespace(add_code=lambda *_: True, remove_code=lambda *_: None)
    rows: Any = SimpleNamespace(use=lambda _: None, release=lambda _: None)
    jit = JitInterface(Binaries(), rows, spaces, lambda *_: None)
    for i in range(30):
        jit._add((1, 0), jit_interface._Entry(0x1000 + i, 0, 0x100000, size), 0x10)
    assert jit.refused == {"all images take too much memory": 27}


def test_an_image_with_code_everywhere_is_refused() -> None:
    image: Any = SimpleNamespace(sections=[SimpleNamespace(flags=6, link_address=0x1000, size=1 << 46)], segments=[])
    with pytest.raises(UnsuitableTarget, match="more code than"):
        _code(image)


@pytest.mark.parametrize("told", [64 << 20, 1 << 40, (1 << 64) - 1])
def test_a_compressed_section_that_is_a_bomb_is_empty(told: int) -> None:
    packed = struct.pack("<IIQQ", 1, 0, told, 1)[:24] + zlib.compress(bytes(64 << 20))
    image = Image(b"\x7fELF\x02\x01".ljust(64, b"\0") + packed)
    assert len(image.contents(Section(1, ".debug_info", 1, SHF_COMPRESSED, 0, 64, len(packed), 0, 0))) == 0


def test_a_recording_that_is_a_bomb_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "run.refleak"
    path.write_bytes(file_header() + encode_chunk(ChunkType.BEGIN, b" " * (65 << 20)))
    with pytest.raises(CannotRead, match="would unpack to more than 65 MB"):
        read_recording(path)


def test_a_recording_unpacks_to_a_size_in_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.refleak"
    writer = RecordingWriter(path, Info())
    writer.write_snapshot(*full_snapshot())
    writer.close()
    read_recording(path)
    monkeypatch.setattr(reader, "_LEAST_UNPACKED", 1)
    monkeypatch.setattr(reader, "_MOST_EXPANSION", 1)
    with pytest.raises(CannotRead, match="would unpack to"):
        read_recording(path)
