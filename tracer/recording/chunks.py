"""The file's frame: a header, then chunks that each say their length and checksum.

The layout is docs/recording-format.md's; the idea, types of four letters with length and CRC-32, is PNG's (W3C PNG,
section 5). All numbers are little-endian.
"""

from __future__ import annotations

import struct
import zlib
from enum import Enum
from typing import BinaryIO

from tracer.errors import CannotRead
from tracer.late_dataclasses import dataclass

MAGIC = b"\x89refleak"
VERSION = 2
PLAIN_VERSION = 1
"""Of a recording that keeps all blocks: one that does not would be taken for such by a reader of version 1."""
_FILE = struct.Struct("<8sHHI")
_CHUNK = struct.Struct("<4sIQQI")
_FILE_SUM_AT, _CHUNK_SUM_AT = 12, 24
_MOST_EXPANSION = 1040
"""deflate makes at most 1,032 bytes of one (zlib's technical notes); more is a lie, told before memory is spent."""
_LEVEL = 1
"""zlib's fastest: the columns are prepared so well that level 6 takes thrice the time to save a tenth."""


class ChunkType(Enum):
    INFO = b"INFO"
    STACKS = b"STAK"
    BEGIN = b"BEGN"
    ARRAY = b"ARRY"
    SYMBOLS = b"SYMS"
    END = b"DONE"


@dataclass(frozen=True)
class Chunk:
    """A chunk as its header tells of it; the payload is still in the file."""

    type: ChunkType | None
    """None: a type that this version does not know, to be passed over."""
    offset: int
    """Of the payload in the file."""
    stored_bytes: int
    raw_bytes: int
    checksum: int


@dataclass(frozen=True)
class Scan:
    chunks: tuple[Chunk, ...]
    ends_early: str | None
    """Why the file's last bytes are no whole chunk; None where they are."""
_OF_A_REPORT = (
    "a JSON report is for `refleak diff` and --baseline; a recording, of which any report is made: -o FILE.refleak"
)


def file_header(version: int = PLAIN_VERSION) -> bytes:
    start = _FILE.pack(MAGIC, version, 0, 0)[:_FILE_SUM_AT]
    return start + struct.pack("<I", zlib.crc32(start))


def encode_chunk(kind: ChunkType, payload: bytes) -> bytes:
    """Return a chunk, its payload compressed."""
    stored = zlib.compress(payload, _LEVEL)
    start = _CHUNK.pack(kind.value, zlib.crc32(stored), len(stored), len(payload), 0)[:_CHUNK_SUM_AT]
    return start + struct.pack("<I", zlib.crc32(start)) + stored


def check_file_header(file: BinaryIO, name: str) -> None:
    """Raise CannotRead for what is no recording, or a newer one than this program knows."""
    head = file.read(_FILE.size)
    if head[: len(MAGIC)] != MAGIC[: len(head)] or not head:
        hint = _OF_A_REPORT if head.lstrip().startswith(b"{") else "make one with -o FILE.refleak"
        raise CannotRead(f"{name} is not a recording of refleak", hint)
    if len(head) < _FILE.size:
        raise CannotRead(f"{name} is cut off within its first {_FILE.size} bytes", "it holds nothing; record again")
    _, version, _, checksum = _FILE.unpack(head)
    if checksum != zlib.crc32(head[:_FILE_SUM_AT]):
        raise damaged(name, 0)
    if version > VERSION:
        raise CannotRead(
            f"{name} has version {version} of the format; this refleak reads up to {VERSION}",
            "read it with the refleak that made it, or a newer one",
        )
    if version < 1:
        raise damaged(name, 0)


def damaged(name: str, offset: int) -> CannotRead:
    return CannotRead(f"{name} is damaged at byte {offset:,}", "copy it again from where it was made")


def scan_chunks(file: BinaryIO, size_bytes: int, name: str) -> Scan:
    """Walk the headers of all chunks, without their payloads; `file` stands after the file's header.

    Raises CannotRead where a header is damaged. Half a chunk at the end is none: that is how a crash or a full disk
    looks, and so are zeros, which some file systems leave after a loss of power.
    """
    chunks: list[Chunk] = []
    offset = file.tell()
    while offset < size_bytes:
        file.seek(offset)
        head = file.read(_CHUNK.size)
        if len(head) < _CHUNK.size or not any(head):
            return Scan(tuple(chunks), f"byte {offset:,} and what follows is no whole chunk")
        letters, checksum, stored, raw, head_sum = _CHUNK.unpack(head)
        if head_sum != zlib.crc32(head[:_CHUNK_SUM_AT]) or raw > stored * _MOST_EXPANSION:
            raise damaged(name, offset)
        offset += _CHUNK.size
        if stored > size_bytes - offset:
            return Scan(tuple(chunks), f"of the chunk at byte {offset - _CHUNK.size:,} only a part is there")
        known = ChunkType(letters) if letters in _LETTERS else None
        chunks.append(Chunk(known, offset, stored, raw, checksum))
        offset += stored
    return Scan(tuple(chunks), None)


_LETTERS = frozenset(kind.value for kind in ChunkType)


def read_payload(file: BinaryIO, chunk: Chunk, name: str) -> bytes:
    """Return a chunk's payload; raises CannotRead where it is not what was written."""
    file.seek(chunk.offset)
    stored = file.read(chunk.stored_bytes)
    if len(stored) != chunk.stored_bytes or zlib.crc32(stored) != chunk.checksum:
        raise damaged(name, chunk.offset)
    inflate = zlib.decompressobj()
    try:
        payload = inflate.decompress(stored, chunk.raw_bytes + 1)
    except zlib.error:
        raise damaged(name, chunk.offset) from None
    if len(payload) != chunk.raw_bytes or not inflate.eof:
        raise damaged(name, chunk.offset)
    return payload
