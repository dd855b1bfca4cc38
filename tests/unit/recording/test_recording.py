"""What is written is what is read; and of a file that is not whole, what is there."""

from __future__ import annotations

import errno
import io
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from full_snapshot import differing_fields, full_snapshot
from hand_made import SECOND, blocks, events, server
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.errors import CannotRead, CannotWrite
from tracer.model.events import EVENT
from tracer.model.snapshot import Binary, Snapshot, Stack
from tracer.recording.chunk_file import open_file
from tracer.recording.chunks import MAGIC, ChunkType, encode_chunk, file_header
from tracer.recording.columns import ROWS
from tracer.recording.reader import read_recording
from tracer.recording.recording import Info, Recording
from tracer.recording.writer import RecordingWriter

INFO = Info("1.2", ("-o", "x.refleak", "--exec", "./srv"), "2026-11-21T12:00:00+00:00")


def recorded(path: Path, snapshot: Snapshot, symbols: object = None) -> Path:
    writer = RecordingWriter(path, INFO, force=True)
    writer.write_snapshot(snapshot, symbols)  # type: ignore[arg-type]
    writer.close()
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("recording") / "run.refleak"
    return recorded(path, *full_snapshot()).read_bytes()


def test_the_full_snapshot_has_no_default_left() -> None:
    assert differing_fields(full_snapshot()[0], Snapshot("launched", 0)) == list(Snapshot.__dataclass_fields__)


def test_every_field_comes_back(tmp_path: Path) -> None:
    snapshot, symbols = full_snapshot()
    found = read_recording(recorded(tmp_path / "run.refleak", snapshot, symbols))
    assert differing_fields(found.snapshot, snapshot) == []
    assert (found.symbols, found.info, found.notes) == (symbols, INFO, ())


def test_the_empty_snapshot_comes_back(tmp_path: Path) -> None:
    found = read_recording(recorded(tmp_path / "run.refleak", Snapshot("launched", 0)))
    assert differing_fields(found.snapshot, Snapshot("launched", 0)) == []
    assert found.symbols is None and found.snapshot.complete


def test_an_open_path_stays_here(tmp_path: Path) -> None:
    snapshot = Snapshot("launched", 0, binaries=(Binary(1, "/bin/x", "aa", "/proc/1/fd/3"),))
    found = read_recording(recorded(tmp_path / "run.refleak", snapshot))
    assert found.snapshot.binaries == (Binary(1, "/bin/x", "aa"),)


def test_long_arrays_and_many_stacks_are_cut_and_joined(tmp_path: Path) -> None:
    rows = 2 * ROWS + 7
    history = np.zeros(rows, EVENT)
    history["time_ns"] = np.arange(rows) * 3
    history["address"] = np.random.default_rng(5).integers(0, 1 << 64, rows, np.uint64)
    stacks = {i * 7 + (1 << 63): Stack((i, i + 1)) for i in range(70_001)}
    snapshot = Snapshot("launched", 1, history=history, stacks=stacks)
    found = read_recording(recorded(tmp_path / "run.refleak", snapshot)).snapshot
    assert np.array_equal(found.history, history) and found.stacks == stacks


def test_an_event_takes_less_than_64_bytes_even_if_nothing_repeats(tmp_path: Path) -> None:
    rows = 100_000
    random = np.random.default_rng(7)
    history = np.zeros(rows, EVENT)
    history["time_ns"] = np.cumsum(random.integers(100, 5000, rows))
    for name in ("address", "object", "stack", "value"):
        history[name] = random.integers(0, 1 << 47, rows, np.uint64)
    history["serial"], history["count"], history["pid"] = random.integers(0, 1 << 20, rows), 2, 812
    path = recorded(tmp_path / "run.refleak", Snapshot("launched", 1, history=history))
    assert path.stat().st_size < 64 * rows


def test_an_existing_file_is_kept_without_force(tmp_path: Path) -> None:
    path = tmp_path / "run.refleak"
    path.write_text("mine")
    with pytest.raises(CannotWrite, match="exists") as failure:
        RecordingWriter(path, INFO)
    assert "--force" in failure.value.hint and path.read_text() == "mine"
    assert read_recording(recorded(path, Snapshot("launched", 5))).snapshot.duration_ns == 5


def test_a_checkpoint_is_what_a_crash_leaves(tmp_path: Path) -> None:
    snapshot, _ = server()
    writer = RecordingWriter(tmp_path / "run.refleak", INFO)
    writer.checkpoint(replace(snapshot, duration_ns=SECOND, allocations=snapshot.allocations[:3], target_ended=False))
    first = read_recording(tmp_path / "run.refleak")
    writer.checkpoint(replace(snapshot, duration_ns=2 * SECOND, target_ended=False))
    found = read_recording(tmp_path / "run.refleak")
    assert (len(first.snapshot.allocations), len(found.snapshot.allocations)) == (3, len(snapshot.allocations))
    assert found.snapshot.stacks == snapshot.stacks
    (loss,) = found.snapshot.losses
    assert loss.reason == found.notes[0] == (
        "the recording ends early: refleak did not write its end, so this is what was known 2.0 s after the start"
    )


def test_the_end_overtakes_the_checkpoints(tmp_path: Path) -> None:
    snapshot, code = server()
    plain = recorded(tmp_path / "plain.refleak", snapshot, code.symbols)
    writer = RecordingWriter(tmp_path / "run.refleak", INFO)
    for _ in range(5):
        writer.checkpoint(snapshot)
    writer.write_snapshot(snapshot, code.symbols)
    assert (tmp_path / "run.refleak").read_bytes() == plain.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["plain.refleak", "run.refleak"]
    assert read_recording(plain).snapshot.complete


def test_a_checkpoint_lets_its_caller_work_between_chunks(tmp_path: Path) -> None:
    snapshot, _ = server()
    sizes = []
    writer = RecordingWriter(tmp_path / "run.refleak", INFO)
    writer.checkpoint(snapshot, lambda: sizes.append((tmp_path / "run.refleak").stat().st_size))
    assert len(set(sizes)) > 5 and sizes == sorted(sizes)
    said = len(sizes)
    writer.write_snapshot(snapshot, None)
    assert len(sizes) == said


def test_what_comes_while_a_checkpoint_is_written_is_in_the_next_one(tmp_path: Path) -> None:
    """Of many stacks some are written at a time: whoever is held meanwhile waits for those alone."""
    snapshot, _ = server()
    stacks = dict(snapshot.stacks) | {1 << 60 | number: Stack((number, number + 1)) for number in range(9000)}
    snapshot = replace(snapshot, stacks=stacks)
    writer = RecordingWriter(path := tmp_path / "run.refleak", INFO)
    shown = []

    def another_comes() -> None:
        shown.append(path.stat().st_size)
        stacks[1 << 61 | len(shown)] = Stack((7,))

    writer.checkpoint(snapshot, another_comes)
    during = len(stacks) - len(shown)
    assert len(set(shown)) > 8 and len(read_recording(path).snapshot.stacks) == during
    writer.checkpoint(snapshot)
    assert read_recording(path).snapshot.stacks == stacks


def test_overtaken_checkpoints_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracer.recording.writer._SPARE_BYTES", 0)
    path, snapshot = tmp_path / "run.refleak", server()[0]
    writer = RecordingWriter(path, INFO)
    sizes = []
    for _ in range(40):
        writer.checkpoint(snapshot)
        sizes.append(path.stat().st_size)
    assert max(sizes) < 7 * sizes[0]
    assert differing_fields(read_recording(path).snapshot, snapshot) == ["losses"]


class Small(io.FileIO):
    """A file on a disk with little room, which takes what fits of each write."""

    room = 0

    def write(self, data: object) -> int:
        part = bytes(data)[: max(0, Small.room)]  # type: ignore[call-overload]
        if not part:
            raise OSError(errno.ENOSPC, "No space left on device")
        Small.room -= len(part)
        return super().write(part)

    def truncate(self, size: int | None = None) -> int:
        Small.room += max(0, self.seek(0, 2) - (size or 0))
        return super().truncate(size)


def opener(room: int) -> Callable[[Path, bool], io.RawIOBase]:
    Small.room = room

    def small(path: Path, replace: bool) -> io.RawIOBase:
        open_file(path, replace).close()
        return Small(path, "w+")

    return small


def test_a_full_disk_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    snapshot, code = server()
    path = tmp_path / "run.refleak"
    size = len(recorded(tmp_path / "other", snapshot, code.symbols).read_bytes())
    writer = RecordingWriter(path, INFO, opener=opener(size))
    writer.checkpoint(replace(snapshot, duration_ns=SECOND))
    with pytest.raises(CannotWrite) as failure:
        writer.write_snapshot(snapshot, code.symbols)
    assert str(failure.value) == f"cannot write {path}: No space left on device; it holds the trace up to 1.0 s"
    assert failure.value.hint == f"refleak report {path} shows what it holds"
    found = read_recording(path)
    assert found.snapshot.duration_ns == SECOND and len(found.snapshot.losses) == 1
    assert sorted(other.name for other in tmp_path.iterdir()) == ["other", "run.refleak"]


def test_a_disk_that_is_full_at_once_says_so(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match="No space left on device"):
        RecordingWriter(tmp_path / "run.refleak", INFO, opener=opener(10))


def test_a_disk_that_has_room_again_gets_the_end(tmp_path: Path) -> None:
    snapshot, code = server()
    path = tmp_path / "run.refleak"
    writer = RecordingWriter(path, INFO, opener=opener(300))
    with pytest.raises(CannotWrite):
        writer.checkpoint(snapshot)
    Small.room = 1 << 20
    writer.write_snapshot(snapshot, code.symbols)
    assert differing_fields(read_recording(path).snapshot, snapshot) == []


def read(tmp_path: Path, content: bytes) -> Recording:
    path = tmp_path / "fuzzed.refleak"
    path.write_bytes(content)
    return read_recording(path)


def test_every_truncation_is_refused_or_a_loss(whole: bytes, tmp_path: Path) -> None:
    snapshot, _ = full_snapshot()
    read_any = 0
    for size in range(len(whole)):
        try:
            found = read(tmp_path, whole[:size])
        except CannotRead as error:
            assert error.hint
            continue
        read_any += 1
        assert found.notes[0].startswith("the recording ends early: ")
        assert found.snapshot.losses[len(snapshot.losses) :] and not found.snapshot.complete
        assert found.snapshot.processes == snapshot.processes
    assert read_any > 500


def test_what_is_missing_is_named(whole: bytes, tmp_path: Path) -> None:
    (note,) = read(tmp_path, whole[: whole.rindex(b"SYMS")]).notes
    assert note.endswith("is there; missing: symbols") or note.endswith("its last part is not closed; missing: symbols")
    (note,) = read(tmp_path, whole[: whole.index(b"ARRY") + 5]).notes
    lacking = note.partition("missing: ")[2].split(", ")
    assert lacking[:3] == ["allocations", "objects", "mapped"] and lacking[-3:] == ["reach", "holders", "symbols"]


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_bit_flips_are_refused(whole: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(whole) * 8 - 1))
    flipped = bytearray(whole)
    flipped[place // 8] ^= 1 << place % 8
    try:
        found = read(tmp_path_factory.getbasetemp(), bytes(flipped))
    except CannotRead as error:
        assert error.hint
    else:
        assert found.notes, place


@given(st.binary(max_size=300), st.booleans(), st.sampled_from([kind.value for kind in ChunkType]))
@settings(max_examples=300, deadline=None)
def test_random_bytes_are_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, with_header: bool, letters: bytes
) -> None:
    start = file_header() + letters if with_header else b""
    with pytest.raises(CannotRead):
        read(tmp_path_factory.getbasetemp(), start + content)


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(
    st.lists(
        st.tuples(st.sampled_from(ChunkType), st.binary(max_size=120) | json_like.map(lambda v: repr(v).encode())),
        max_size=4,
    )
)
@settings(max_examples=300, deadline=None)
def test_right_checksums_over_nonsense_are_refused(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[tuple[ChunkType, bytes]]
) -> None:
    content = file_header() + b"".join(encode_chunk(kind, payload) for kind, payload in chunks)
    with pytest.raises(CannotRead):
        read(tmp_path_factory.getbasetemp(), content)


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_changed_payloads_with_right_checksums(
    whole: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A file that another program made: whatever it holds, no other exception may come of it."""
    content, at = bytearray(whole[:16]), 16
    chunks = []
    while at < len(whole):
        kind, _, stored, _, _ = struct.unpack_from("<4sIQQI", whole, at)
        chunks.append((ChunkType(kind), zlib.decompress(whole[at + 28 : at + 28 + stored])))
        at += 28 + stored
    which = data.draw(st.integers(0, len(chunks) - 1))
    for index, (kind, payload) in enumerate(chunks):
        changed = bytearray(payload)
        if index == which:
            place = data.draw(st.integers(0, len(changed) - 1))
            changed[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        content += encode_chunk(kind, bytes(changed))
    try:
        found = read(tmp_path_factory.getbasetemp(), bytes(content))
    except CannotRead as error:
        assert error.hint
    else:
        assert isinstance(found.snapshot, Snapshot)


def test_a_newer_version_says_so(tmp_path: Path) -> None:
    start = MAGIC + struct.pack("<HH", 3, 0)
    with pytest.raises(CannotRead, match="has version 3 of the format; this refleak reads up to 2") as failure:
        read(tmp_path, start + struct.pack("<I", zlib.crc32(start)))
    assert "newer" in failure.value.hint


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a recording"), (b'{"format": 1}', "is not a recording"), (MAGIC, "is cut off"),
        (file_header(), "holds no data yet"),
        (file_header() + encode_chunk(ChunkType.INFO, b"{}"), "holds no data yet"),
    ],
)  # fmt: skip
def test_what_is_no_recording_says_why(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(CannotRead, match=message):
        read(tmp_path, content)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(CannotRead, match="No such file"):
        read_recording(tmp_path / "none")
    with pytest.raises(CannotRead, match="is a directory"):
        read_recording(tmp_path)


def test_a_declared_size_beyond_reason_is_refused_unread(tmp_path: Path) -> None:
    stored = zlib.compress(b"x")
    start = struct.pack("<4sIQQ", b"BEGN", zlib.crc32(stored), len(stored), 1 << 40)
    with pytest.raises(CannotRead, match="is damaged at byte 16"):
        read(tmp_path, file_header() + start + struct.pack("<I", zlib.crc32(start)) + stored)


def test_unknown_chunks_are_passed_over(whole: bytes, tmp_path: Path) -> None:
    stored = b"later"
    start = struct.pack("<4sIQQ", b"LATR", zlib.crc32(stored), len(stored), 5)
    odd = start + struct.pack("<I", zlib.crc32(start)) + stored
    found = read(tmp_path, whole[:16] + odd + whole[16:] + odd)
    assert differing_fields(found.snapshot, full_snapshot()[0]) == [] and not found.notes


def test_zeros_at_the_end_are_an_early_end(whole: bytes, tmp_path: Path) -> None:
    found = read(tmp_path, whole[: whole.rindex(b"DONE")] + bytes(4096))
    assert found.notes[0].startswith("the recording ends early: byte ")


def test_records_of_any_order_keep_it(tmp_path: Path) -> None:
    live = blocks(*({"address": (i * 7919) % 101, "size": i} for i in range(101)))
    history = events(*({"time_ns": (i * 31) % 57} for i in range(57)))
    snapshot = Snapshot("launched", 0, allocations=live, history=history)
    assert differing_fields(read_recording(recorded(tmp_path / "r", snapshot)).snapshot, snapshot) == []
