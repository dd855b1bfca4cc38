"""jitdump files, made byte by byte after perf's specification."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.jit.jitdump import CodeLoaded, CodeMoved, JitdumpReader

LOAD, MOVE, DEBUG_INFO, CLOSE, UNWINDING_INFO = range(5)


def header(magic: bytes = b"DTiJ", version: int = 1, size: int = 40, machine: int = 62, flags: int = 0) -> bytes:
    return struct.pack("<4sIIIIIQQ", magic, version, size, machine, 0, 77, 5, flags).ljust(size, b"\0")


def record(number: int, body: bytes, time_ns: int = 9) -> bytes:
    return struct.pack("<IIQ", number, 16 + len(body), time_ns) + body


def load(start: int, code: bytes, name: bytes, time_ns: int = 9) -> bytes:
    return record(LOAD, struct.pack("<IIQQQQ", 77, 77, start, start, len(code), 1) + name + b"\0" + code, time_ns)


def move(old: int, new: int, size: int, time_ns: int = 9) -> bytes:
    return record(MOVE, struct.pack("<IIQQQQQ", 77, 77, new, old, new, size, 1), time_ns)


def debug_info(start: int, *entries: tuple[int, int, bytes]) -> bytes:
    lines = b"".join(struct.pack("<QII", address, line, 0) + name + b"\0" for address, line, name in entries)
    return record(DEBUG_INFO, struct.pack("<QQ", start, len(entries)) + lines)


DUMP = (
    header()
    + debug_info(0x1000, (0x1004, 8, b"a.x"), (0x1000, 7, b"a.x"), (0x1009, 3, b"b.x"), (0x100B, 4, b"\xff"))
    + record(UNWINDING_INFO, bytes(24))
    + load(0x1000, bytes(16), b"first", 11)
    + record(99, b"of a later version")
    + load(0x2000, bytes(5), b"second", 12)
    + move(0x1000, 0x3000, 16, 13)
    + record(CLOSE, b"")
    + load(0x4000, bytes(5), b"after the end")
)
# Entries that repeat a name do so by order in the file, which here is not that of the addresses.
PLACES = ((0x1000, "a.x", 7), (0x1004, "a.x", 8), (0x1009, "b.x", 3), (0x100B, "b.x", 4))
FOUND = [
    CodeLoaded(11, 0x1000, 16, "first", PLACES), CodeLoaded(12, 0x2000, 5, "second"), CodeMoved(13, 0x1000, 0x3000, 16),
]  # fmt: skip


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_a_dump_in_pieces(size: int) -> None:
    reader = JitdumpReader()
    assert [event for at in range(0, len(DUMP), size) for event in reader.feed(DUMP[at : at + size])] == FOUND
    assert (reader.refused, reader.malformed, reader.closed) == (None, 0, True)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (header(b"JiTD"), "big-endian"),
        (header(b"\x7fELF"), "no jitdump"),
        (header(version=2), "version 2"),
        (header(machine=183), "of machine 183"),
        (header(size=40)[:8] + struct.pack("<I", 39) + header()[12:], "its header's size is impossible"),
        (header() + struct.pack("<IIQ", LOAD, 15, 0), "a record's size is impossible"),
        (header() + struct.pack("<IIQ", LOAD, 1 << 29, 0), "a record's size is impossible"),
    ],
)
def test_refused(head: bytes, reason: str) -> None:
    reader = JitdumpReader()
    assert reader.feed(head + load(0x1000, b"x", b"f")) == []
    assert reader.refused == reason
    assert reader.feed(load(0x1000, b"x", b"f")) == []


def test_a_longer_header_is_passed_over() -> None:
    assert JitdumpReader().feed(header(size=48) + load(0x1000, b"x", b"f")) == [CodeLoaded(9, 0x1000, 1, "f")]


def test_a_header_without_a_machine_is_taken() -> None:
    """CPython 3.13's."""
    assert JitdumpReader().feed(header(machine=0) + load(0x1000, b"x", b"f")) == [CodeLoaded(9, 0x1000, 1, "f")]


def test_a_clock_of_the_processor_says_nothing() -> None:
    assert JitdumpReader().feed(header(flags=1) + load(0x1000, b"x", b"f")) == [CodeLoaded(None, 0x1000, 1, "f")]


@pytest.mark.parametrize(
    "entries",
    [
        [(0x1000, 7, b"a.x"), (0x1011, 8, b"a.x")],
        [(0x0FFF, 7, b"a.x")],
        [(0x1000, 7, b"\x04\x07")],
        [(0x1000, 7, b"\xff\xfe")],
    ],
)
def test_lines_that_cannot_be_right_are_left_out(entries: list[tuple[int, int, bytes]]) -> None:
    data = header() + debug_info(0x1000, *entries) + load(0x1000, bytes(16), b"f")
    assert JitdumpReader().feed(data) == [CodeLoaded(9, 0x1000, 16, "f")]


def test_lines_of_v8_are_not_believed() -> None:
    data = header() + debug_info(0x1000, (0x1000, 7, b"a.js")) + load(0x1000, bytes(16), b"JS:*f a.js:7:1")
    assert JitdumpReader().feed(data) == [CodeLoaded(9, 0x1000, 16, "JS:*f a.js:7:1")]


def test_lines_belong_to_the_next_load_of_their_address() -> None:
    info = debug_info(0x1000, (0x1000, 7, b"a.x"))
    data = header() + info + load(0x2000, b"x", b"other") + load(0x1000, b"x", b"f")
    assert [event.places for event in JitdumpReader().feed(data) if isinstance(event, CodeLoaded)] == [(), ()]


@pytest.mark.parametrize(
    "bad",
    [
        load(0x1000, b"", b"empty"),
        load((1 << 47) - 1, b"xx", b"beyond"),
        record(LOAD, b"short"),
        record(LOAD, struct.pack("<IIQQQQ", 77, 77, 1, 1, 1, 1) + b"no end"),
        record(MOVE, b"short"),
        move(0x1000, 0x2000, 0),
        record(DEBUG_INFO, struct.pack("<QQ", 0x1000, 1 << 60)),
    ],
)
def test_a_bad_record_is_counted_and_passed_over(bad: bytes) -> None:
    reader = JitdumpReader()
    assert reader.feed(header() + bad + load(0x5000, b"x", b"good")) == [CodeLoaded(9, 0x5000, 1, "good")]
    assert (reader.malformed, reader.refused) == (1, None)


@given(st.binary(max_size=400), st.integers(1, 100))
def test_any_bytes_after_a_header(data: bytes, size: int) -> None:
    whole, pieces = JitdumpReader(), JitdumpReader()
    data = header() + data
    found = whole.feed(data)
    assert [event for at in range(0, len(data), size) for event in pieces.feed(data[at : at + size])] == found
    assert (whole.refused, whole.malformed) == (pieces.refused, pieces.malformed)


@given(st.data())
def test_a_dump_with_changed_bytes(data: st.DataObject) -> None:
    changed = bytearray(DUMP)
    for at in data.draw(st.lists(st.integers(0, len(changed) - 1), min_size=1, max_size=8)):
        changed[at] = data.draw(st.integers(0, 255))
    for event in JitdumpReader().feed(bytes(changed)):
        if isinstance(event, CodeLoaded):
            assert event.size > 0 and event.start + event.size <= 1 << 47
            assert all(event.start <= address <= event.start + event.size for address, _, _ in event.places)
