from __future__ import annotations

import multiprocessing
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from frame_bytes import EhFrame, elf
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.cfi import unwind_cache
from tracer.cfi.unwind_cache import cached_table
from tracer.cfi.unwind_table import UnwindTable, build_table
from tracer.elf.image import Image
from tracer.files.cache_folder import OF_ROOT, cache_directory, evict_crowded

TEXT, FRAMES = 0x401000, 0x500000


def binary(functions: int = 10, step: int = 64) -> Image:
    frame = EhFrame(FRAMES).common()
    for i in range(functions):
        frame.function(TEXT + step * i, step, b"\x41\x0e\x10")
    return Image(elf([(".eh_frame", FRAMES, frame.end())], [(TEXT, step * functions)]))


def same(first: UnwindTable | None, second: UnwindTable | None) -> bool:
    if first is None or second is None:
        return first is second
    pairs = ((first.pages, second.pages), (first.rows, second.rows), (first.rules, second.rules))
    equal = all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)
    return equal and first.first_link_page == second.first_link_page


class Builder:
    """Counts how often a table is built and not read."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, image: Image) -> UnwindTable | None:
        self.calls += 1
        return build_table(image)


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Builder:
    counting = Builder()
    monkeypatch.setattr(unwind_cache, "build_table", counting)
    return counting


@pytest.fixture
def tmp_path(private_folders: Callable[[], Path]) -> Path:
    return private_folders()


def only_file(directory: Path) -> Path:
    (path,) = directory.iterdir()
    return path


def test_the_second_call_reads_what_the_first_wrote(tmp_path: Path, builder: Builder) -> None:
    image = binary()
    built = cached_table(image, tmp_path / "new")
    read = cached_table(image, tmp_path / "new")
    assert builder.calls == 1
    assert built is not None
    assert same(built, read)
    assert same(built, build_table(image))
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    assert only_file(tmp_path / "new").suffix == ".unwind"


def test_a_binary_without_a_table_is_remembered(tmp_path: Path, builder: Builder) -> None:
    image = Image(elf([], [(TEXT, 0x1000)]))
    assert cached_table(image, tmp_path) is None
    assert cached_table(image, tmp_path) is None
    assert builder.calls == 1


def test_binaries_that_differ_do_not_share(tmp_path: Path, builder: Builder) -> None:
    images = [binary(10), binary(11), binary(10, 32)]
    images += [Image(elf([], [(TEXT, size)])) for size in (0x1000, 0x2000)]
    for image in images * 2:
        assert same(cached_table(image, tmp_path), build_table(image))
    assert builder.calls == len(images)
    assert len(list(tmp_path.iterdir())) == len(images)


def test_one_changed_byte_of_the_frames_is_another_binary(tmp_path: Path, builder: Builder) -> None:
    image = binary()
    cached_table(image, tmp_path)
    data = bytearray(image.data[:])
    at = data.index(b"\x41\x0e\x10")
    data[at + 2] = 0x18
    changed = Image(bytes(data))
    assert same(cached_table(changed, tmp_path), build_table(changed))
    assert builder.calls == 2


@pytest.mark.parametrize("keep", [0, 1, 67, 68, 69, -1])
def test_a_truncated_file_is_built_anew(tmp_path: Path, builder: Builder, keep: int) -> None:
    image = binary()
    cached_table(image, tmp_path)
    path = only_file(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:keep])
    assert same(cached_table(image, tmp_path), build_table(image))
    assert builder.calls == 2
    assert path.read_bytes() == whole


@settings(max_examples=150, deadline=None)
@given(at=st.integers(0, 1 << 30), bit=st.integers(0, 7))
def test_a_flipped_bit_anywhere_is_found(private_folders: Callable[[], Path], at: int, bit: int) -> None:
    directory, image, builder = private_folders(), binary(3), Builder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unwind_cache, "build_table", builder)
        cached_table(image, directory)
        path = only_file(directory)
        data = bytearray(path.read_bytes())
        data[at % len(data)] ^= 1 << bit
        path.write_bytes(data)
        assert same(cached_table(image, directory), build_table(image))
    assert builder.calls == 2


@pytest.mark.parametrize("damage", ["rule", "pages"])
def test_a_file_with_a_right_checksum_is_still_checked(tmp_path: Path, builder: Builder, damage: str) -> None:
    image = binary()
    cached_table(image, tmp_path)
    path = only_file(tmp_path)
    data = bytearray(path.read_bytes())
    (pages,) = struct.unpack_from("<I", data, 56)
    struct.pack_into("<I", data, 68 + (4 * pages if damage == "rule" else 0), 100)
    struct.pack_into("<I", data, 12, zlib.crc32(data[16:]))
    path.write_bytes(data)
    assert same(cached_table(image, tmp_path), build_table(image))
    assert builder.calls == 2


def test_another_version_is_built_anew(tmp_path: Path, builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    image = binary()
    cached_table(image, tmp_path)
    monkeypatch.setattr(unwind_cache, "VERSION", unwind_cache.VERSION + 1)
    cached_table(image, tmp_path)
    cached_table(image, tmp_path)
    assert builder.calls == 2


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path, builder: Builder) -> None:
    images = [binary(10, step) for step in (32, 36, 40)]  # files of one size
    for age, image in zip((30, 20, 10), images, strict=True):
        before = set(tmp_path.iterdir())
        cached_table(image, tmp_path)
        (new,) = set(tmp_path.iterdir()) - before
        os.utime(new, (1_000_000 - age, 1_000_000 - age))
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    cached_table(images[0], tmp_path)  # the oldest, used again
    assert builder.calls == 3
    cached_table(binary(10, 44), tmp_path, limit_bytes=size)
    assert len(list(tmp_path.iterdir())) == 4  # somebody may be held
    evict_crowded()
    assert len(list(tmp_path.iterdir())) == 3
    cached_table(images[0], tmp_path)
    cached_table(images[2], tmp_path)
    assert builder.calls == 4
    cached_table(images[1], tmp_path)
    assert builder.calls == 5


def test_a_table_larger_than_the_limit_is_returned_not_kept(tmp_path: Path) -> None:
    image = binary()
    assert same(cached_table(image, tmp_path, limit_bytes=10), build_table(image))
    evict_crowded()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_is_removed_in_time(tmp_path: Path) -> None:
    old, young, other = tmp_path / "new-old", tmp_path / "new-young", tmp_path / "other"
    for path in (old, young, other):
        path.write_bytes(b"x")
    os.utime(old, (1, 1))
    os.utime(other, (1, 1))
    cached_table(binary(), tmp_path)
    evict_crowded()
    assert (old.exists(), young.exists(), other.exists()) == (False, True, True)


@pytest.mark.parametrize("place", ["a file", "a folder named like the table"])
def test_a_cache_that_cannot_be_used_costs_no_table(tmp_path: Path, place: str) -> None:
    image = binary()
    if place == "a file":
        (tmp_path / "cache").write_bytes(b"")
    else:
        cached_table(image, tmp_path / "cache")
        path = only_file(tmp_path / "cache")
        path.unlink()
        path.mkdir()
    assert same(cached_table(image, tmp_path / "cache"), build_table(image))
    if place != "a file":
        assert [path.is_dir() for path in (tmp_path / "cache").iterdir()] == [True]  # no temporary file stays


def test_the_directory_of_a_user_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tracer.files.cache_folder.os.geteuid", lambda: 1000)
    monkeypatch.delenv("REFLEAK_CACHE", raising=False)
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_directory() == Path("/home/someone/.cache/refleak")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_directory() == Path("/home/someone/.cache/refleak")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "refleak"


def test_that_of_root_does_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tracer.files.cache_folder.os.geteuid", lambda: 0)
    monkeypatch.delenv("REFLEAK_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == OF_ROOT


def test_a_directory_that_was_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REFLEAK_CACHE", str(tmp_path / "refleak"))
    assert cache_directory() == tmp_path / "refleak"
    cached_table(binary())
    assert only_file(tmp_path / "refleak").suffix == ".unwind"


def _use(directory: Path, start: object, rounds: int, results: object) -> None:
    images = [binary(functions) for functions in range(5, 15)]
    expected = [build_table(image) for image in images]
    limit = 2000  # a few files: each write evicts what the other process may be reading
    start.wait()  # type: ignore[attr-defined]
    equal = 0
    for _ in range(rounds):
        for image, table in zip(images, expected, strict=True):
            equal += same(cached_table(image, directory, limit), table)
    results.put(equal)  # type: ignore[attr-defined]


def test_two_processes_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(2), context.SimpleQueue()
    processes = [context.Process(target=_use, args=(tmp_path, start, 20, results)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert [results.get() for _ in processes] == [200, 200]
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".unwind"]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 2000
