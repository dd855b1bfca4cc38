"""jitdump files, jit-PID.dump.

Linux, tools/perf/Documentation/jitdump-specification.txt, version 1.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from tracer.jit.code_log import Place
from tracer.jit.function_names import is_of_v8
from tracer.late_dataclasses import dataclass

MAGIC, MAGIC_OF_OTHER_ORDER = b"DTiJ", b"JiTD"
VERSION = 1
_X86_64 = 62
_NO_MACHINE = 0
"""CPython 3.13 leaves it out; its process runs here, so it is ours."""
_ARCHITECTURE_CLOCK = 1
_HEADER = struct.Struct("<4sIIIIIQQ")
_RECORD = struct.Struct("<IIQ")
_LOAD = struct.Struct("<IIQQQQ")
_MOVE = struct.Struct("<IIQQQQQ")
_DEBUG_INFO = struct.Struct("<QQ")
_DEBUG_ENTRY = struct.Struct("<QII")
_SAME_NAME = b"\xff"
_LARGEST_RECORD = 1 << 26
_MOST_PLACES = 1 << 16
"""Of one function."""
_MOST_WAITING = 64
"""Functions whose places came before them."""
_LONGEST_NAME = 1 << 12
_LARGEST_HEADER = 1 << 16
_END_OF_USER_SPACE = 1 << 47


class _Id(IntEnum):
    LOAD = 0
    MOVE = 1
    DEBUG_INFO = 2
    CLOSE = 3
    UNWINDING_INFO = 4


@dataclass(frozen=True)
class CodeLoaded:
    """`time_ns` is None where the file counts its time by the processor's clock."""

    time_ns: int | None
    start: int
    size: int
    name: str
    places: tuple[Place, ...] = ()


@dataclass(frozen=True)
class CodeMoved:
    time_ns: int | None
    old: int
    new: int
    size: int


class JitdumpReader:
    """Reads a dump as it grows. `refused` says why no more is read of it; `malformed` counts useless records."""

    def __init__(self) -> None:
        self.refused: str | None = None
        self.malformed = 0
        self.closed = False
        self._rest = bytearray()
        self._needed = 0
        self._has_header = self._is_monotonic = False
        self._places: dict[int, tuple[Place, ...]] = {}

    def feed(self, data: bytes) -> list[CodeLoaded | CodeMoved]:
        """Return what the records say that `data` completes."""
        if self.refused is not None or self.closed:
            return []
        buffer, at = self._rest, 0
        buffer += data
        if len(buffer) < self._needed:
            return []
        if not self._has_header:
            at = self._header(buffer)
            if not self._has_header:
                return []
        return self._records(buffer, at)

    def _records(self, buffer: bytearray, at: int) -> list[CodeLoaded | CodeMoved]:
        """Read the whole records from `at` on, and take them out of the buffer."""
        found: list[CodeLoaded | CodeMoved] = []
        while len(buffer) - at >= _RECORD.size and not self.closed:
            number, size, time_ns = _RECORD.unpack_from(buffer, at)
            if not _RECORD.size <= size <= _LARGEST_RECORD:
                self.refused = "a record's size is impossible"
                return found
            self._needed = size
            if len(buffer) - at < size:
                break
            body = bytes(memoryview(buffer)[at + _RECORD.size : at + size])
            self._record(number, time_ns if self._is_monotonic else None, body, found)
            at += size
            self._needed = 0
        del buffer[:at]
        return found

    def _header(self, buffer: bytearray) -> int:
        """Check the header once it is there; return its size."""
        if len(buffer) < _HEADER.size:
            return 0
        magic, version, size, machine, _, _, _, flags = _HEADER.unpack_from(buffer)
        if magic != MAGIC:
            self.refused = "big-endian" if magic == MAGIC_OF_OTHER_ORDER else "no jitdump"
        elif version != VERSION:
            self.refused = f"version {version}"
        elif machine not in (_X86_64, _NO_MACHINE):
            self.refused = f"of machine {machine}"
        elif not _HEADER.size <= size <= _LARGEST_HEADER:
            self.refused = "its header's size is impossible"
        elif len(buffer) >= size:
            self._has_header, self._is_monotonic = True, not flags & _ARCHITECTURE_CLOCK
            return int(size)
        return 0

    def _record(self, number: int, time_ns: int | None, body: bytes, found: list[CodeLoaded | CodeMoved]) -> None:
        try:
            if number == _Id.LOAD:
                found.append(self._load(time_ns, body))
            elif number == _Id.MOVE:
                _, _, _, old, new, size, _ = _MOVE.unpack_from(body)
                _check(old, size)
                _check(new, size)
                found.append(CodeMoved(time_ns, old, new, size))
            elif number == _Id.DEBUG_INFO:
                address, places = _debug_info(body)
                if len(self._places) >= _MOST_WAITING:
                    self._places.clear()
                self._places[address] = places
            elif number == _Id.CLOSE:
                self.closed = True
        except (struct.error, ValueError):
            self.malformed += 1

    def _load(self, time_ns: int | None, body: bytes) -> CodeLoaded:
        _, _, _, start, size, _ = _LOAD.unpack_from(body)
        _check(start, size)
        end = body.index(0, _LOAD.size)
        name = body[_LOAD.size : min(end, _LOAD.size + _LONGEST_NAME)].decode("utf-8", "replace")
        places = self._places.pop(start, ())
        self._places.clear()  # information is of the load that follows it
        return CodeLoaded(time_ns, start, size, name, _believable(name, places, start, start + size))


def _believable(name: str, places: tuple[Place, ...], start: int, end: int) -> tuple[Place, ...]:
    """Return the places of a function; none if one of them cannot be right.

    Those of V8 (Node 20) are not believed at all: the addresses in baseline code are offsets of bytecode, others are
    moved by the size of an ELF header, and the names of some files are garbage with zero bytes in it.
    """
    right = all(start <= address <= end and file.isprintable() and "\ufffd" not in file for address, file, _ in places)
    return places if right and not is_of_v8(name) else ()


def _check(start: int, size: int) -> None:
    if not size or start + size > _END_OF_USER_SPACE:
        raise ValueError("range")


def _debug_info(body: bytes) -> tuple[int, tuple[Place, ...]]:
    address, count = _DEBUG_INFO.unpack_from(body)
    at, name, places = _DEBUG_INFO.size, "", []
    if count > _MOST_PLACES:
        raise ValueError("places")
    for _ in range(count):
        where, line, _ = _DEBUG_ENTRY.unpack_from(body, at)
        at += _DEBUG_ENTRY.size
        end = body.index(0, at)
        if body[at:end] != _SAME_NAME:
            name = body[at:end].decode("utf-8", "replace")
        places.append((where, name, line))
        at = end + 1
    return address, tuple(sorted(places, key=lambda place: place[0]))
