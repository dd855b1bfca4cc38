"""Ring buffers read through a window, as the kernel lays them out: records that wrap, records that are not finished."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.kernel import rings
from tracer.kernel.rings import Ring
from tracer.model import records
from tracer.model.events import EVENT

PAGE = mmap.PAGESIZE
SIZE = 16 * PAGE
RECORD = np.dtype([("number", "<u8"), ("rest", "<u8", (9,))])
BUSY, DISCARD = 1 << 31, 1 << 30


class Producer:
    """A file that looks like a BPF ring buffer: consumer's page, producer's page, the data, the data again."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("ring")
        os.ftruncate(self.fd, 2 * PAGE + 2 * SIZE)
        self.made = 0

    @property
    def free(self) -> int:
        return SIZE - (self.made - struct.unpack("<Q", os.pread(self.fd, 8, 0))[0])

    def write(self, blob: bytes, flags: int = 0) -> None:
        record = struct.pack("<II", len(blob) | flags, 0) + blob + bytes(-len(blob) % 8)
        assert len(record) <= self.free
        at = self.made % SIZE
        os.pwrite(self.fd, record, 2 * PAGE + at)
        os.pwrite(self.fd, record[: SIZE - at], 2 * PAGE + SIZE + at)
        os.pwrite(self.fd, record[SIZE - at :], 2 * PAGE)
        self.made += len(record)
        os.pwrite(self.fd, struct.pack("<Q", self.made), PAGE)

    def finish(self, at: int, length: int) -> None:
        for copy in (at % SIZE, at % SIZE + SIZE):
            os.pwrite(self.fd, struct.pack("<I", length), 2 * PAGE + copy)


@pytest.fixture
def producer() -> Iterator[Producer]:
    made = Producer()
    yield made
    os.close(made.fd)


@pytest.fixture(params=[PAGE, 4 * PAGE, SIZE])
def window(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(rings, "_WINDOW_BYTES", request.param)
    return int(request.param)


def mapped_bytes() -> int:
    lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines() if "memfd:ring" in line]
    return sum(int(end, 16) - int(start, 16) for start, _, end in (line[0].partition("-") for line in lines))


def record(number: int) -> bytes:
    made = np.zeros(1, RECORD)
    made["number"], made["rest"] = number, np.arange(9) * number
    return made.tobytes()


def test_records_come_out_as_they_went_in_over_many_turns(producer: Producer, window: int) -> None:
    ring, first = Ring(producer.fd, SIZE), 0
    for burst in (1, 2, 700, 46, 47, 744, 744, 3):  # 744 records of 88 bytes fill it
        numbers = list(range(first, first + burst))
        for number in numbers:
            producer.write(record(number))
        taken = ring.read_records(RECORD)
        assert taken["number"].tolist() == numbers
        assert (taken["rest"] == np.arange(9) * taken["number"][:, None]).all()
        assert len(ring.read_records(RECORD)) == 0 and producer.free == SIZE
        first += burst
    ring.close()
    assert mapped_bytes() == 0


def test_only_a_window_is_mapped(producer: Producer, window: int) -> None:
    ring = Ring(producer.fd, SIZE)
    assert mapped_bytes() == 2 * PAGE + window + rings.BEHIND_BYTES
    for _ in range(3):
        for number in range(700):
            producer.write(record(number))
        ring.read_records(RECORD)
        assert mapped_bytes() == 2 * PAGE + window + rings.BEHIND_BYTES
    ring.close()


def test_reading_stops_at_a_record_that_is_being_written(producer: Producer, window: int) -> None:
    ring = Ring(producer.fd, SIZE)
    for number in range(400):
        producer.write(record(number))
    at = producer.made
    producer.write(record(400), BUSY)
    producer.write(record(401))
    assert ring.read_records(RECORD)["number"].tolist() == list(range(400))
    assert len(ring.read_records(RECORD)) == 0
    producer.finish(at, RECORD.itemsize)
    assert ring.read_records(RECORD)["number"].tolist() == [400, 401]
    ring.close()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(0, PAGE), st.booleans()), max_size=9), max_size=9))
def test_blobs_of_any_length_come_out_unless_discarded(bursts: list[list[tuple[int, bool]]]) -> None:
    producer = Producer()
    ring = Ring(producer.fd, SIZE)
    for burst in bursts:
        sent = [(os.urandom(length), discarded) for length, discarded in burst]
        for blob, discarded in sent:
            producer.write(blob, DISCARD if discarded else 0)
        assert ring.read_blobs() == [blob for blob, discarded in sent if not discarded]
    ring.close()
    os.close(producer.fd)


def test_the_largest_record_comes_out_whole_wherever_it_begins(producer: Producer, window: int) -> None:
    ring = Ring(producer.fd, SIZE)
    for number in range(200):
        sent = [os.urandom(number * 8), os.urandom(rings.MOST_RECORD_BYTES)]
        for blob in sent:
            producer.write(blob)
        assert ring.read_blobs() == sent
    ring.close()


def test_no_record_is_larger_than_a_ring_can_hand_out() -> None:
    kinds = (
        records.STACK, records.INTERPRETER_STACK, records.INTERPRETER_CODE, records.STACK_DUMP, records.CONTROL,
        EVENT,
    )  # fmt: skip
    assert max(kind.itemsize for kind in kinds) <= rings.MOST_RECORD_BYTES
