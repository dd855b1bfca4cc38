"""Reads a recording, of whatever is there of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tracer.errors import CannotRead
from tracer.files.json_codec import Malformed, from_json, parse
from tracer.files.plain_file import open_plain
from tracer.model.frames import Symbols
from tracer.model.snapshot import Loss, Records, Stack
from tracer.recording.chunks import Chunk, ChunkType, check_file_header, damaged, read_payload, scan_chunks
from tracer.recording.columns import decode_records
from tracer.recording.recording import ARRAYS, Begin, Info, Recording, with_arrays
from tracer.recording.stack_table import decode_stacks
from tracer.recording.symbol_table import decode_symbols

_LEAST_UNPACKED, _MOST_EXPANSION = 1 << 29, 32
"""A recording unpacks to at most so many bytes, or so many times its size: what says more is made to fill memory."""
_LARGEST_DOCUMENT = 1 << 26
_DOCUMENTS = (ChunkType.BEGIN, ChunkType.INFO, ChunkType.SYMBOLS, ChunkType.END)
_RECORD_AGAIN = "record again: refleak or its machine stopped before the first data were written"


def read_recording(path: Path) -> Recording:
    """Read a recording; raises CannotRead for what is none, damaged, or newer than this program.

    Of a file that ends early all that is whole is read, and what is missing is a loss of its Snapshot. No more
    memory is used than the file's size allows of.
    """
    name = str(path)
    try:
        with open(open_plain(path), "rb") as file:
            return _Reader(file, name).read()
    except OSError as error:
        raise CannotRead(f"cannot read {name}: {error.strerror}", "check the path and its permissions") from None


class _Reader:
    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name = file, name
        self._size = os.fstat(file.fileno()).st_size
        self._room = max(_LEAST_UNPACKED, _MOST_EXPANSION * self._size)
        """Bytes that may still be unpacked."""

    def read(self) -> Recording:
        check_file_header(self._file, self._name)
        scan = scan_chunks(self._file, self._size, self._name)
        begin, end = self._last_group(scan.chunks)
        whole = end < len(scan.chunks)
        group = scan.chunks[begin:end]
        head = self._decoded(group[0], self._begin)
        stacks = self._stacks(scan.chunks[:end])
        arrays, missing = self._arrays(group, head.rows)
        if len(stacks) < head.stacks:
            missing.append("stacks")
        symbols = self._symbols(group)
        if head.symbols and symbols is None:
            missing.append("symbols")
        notes = tuple(_notes(head, None if whole else scan.ends_early or "its last part is not closed", missing))
        facts = head.facts
        losses = (*facts.losses, *(Loss(note, 1, "") for note in notes))
        snapshot = with_arrays(replace(facts, losses=losses), stacks, arrays)
        return Recording(snapshot, symbols, self._info(scan.chunks), notes)

    def _last_group(self, chunks: Sequence[Chunk]) -> tuple[int, int]:
        """Return the first chunk of the last whole group, and its END; where there is none, of the last begun one."""
        begins = [i for i, chunk in enumerate(chunks) if chunk.type is ChunkType.BEGIN]
        ends = [i for i, chunk in enumerate(chunks) if chunk.type is ChunkType.END]
        for end in reversed(ends):
            before = [begin for begin in begins if begin < end]
            if before:
                read_payload(self._file, chunks[end], self._name)
                return before[-1], end
        if not begins:
            raise CannotRead(f"{self._name} holds no data yet", _RECORD_AGAIN)
        return begins[-1], len(chunks)

    def _decoded(self, chunk: Chunk, decode: Any) -> Any:
        self._room -= chunk.raw_bytes
        if self._room < 0 or (chunk.type in _DOCUMENTS and chunk.raw_bytes > _LARGEST_DOCUMENT):
            raise CannotRead(
                f"{self._name} would unpack to more than {chunk.raw_bytes >> 20:,} MB at byte {chunk.offset:,}",
                "no refleak made it: get it from where it was made",
            )
        try:
            return decode(read_payload(self._file, chunk, self._name))
        except Malformed:
            raise damaged(self._name, chunk.offset) from None

    def _begin(self, payload: bytes) -> Begin:
        document = parse(payload)
        return from_json(Begin, document)

    def _info(self, chunks: Sequence[Chunk]) -> Info:
        chunk = next((chunk for chunk in chunks if chunk.type is ChunkType.INFO), None)
        info: Info = Info() if chunk is None else self._decoded(chunk, lambda payload: from_json(Info, parse(payload)))
        return info

    def _stacks(self, chunks: Iterable[Chunk]) -> dict[int, Stack]:
        stacks: dict[int, Stack] = {}
        for chunk in chunks:
            if chunk.type is ChunkType.STACKS:
                stacks.update(self._decoded(chunk, decode_stacks))
        return stacks

    def _arrays(self, group: Iterable[Chunk], rows: dict[str, int]) -> tuple[dict[str, Records], list[str]]:
        """Return the arrays, and the names of those that lack rows."""
        parts: dict[str, list[Records]] = {name: [] for name in ARRAYS}
        for chunk in group:
            if chunk.type is not ChunkType.ARRAY:
                continue
            found = self._decoded(chunk, lambda payload: decode_records(payload, ARRAYS))
            if found is not None:
                parts[found[0]].append(found[1])
        arrays = {name: _joined(parts[name], dtype) for name, dtype in ARRAYS.items()}
        return arrays, [name for name, array in arrays.items() if len(array) < rows.get(name, 0)]

    def _symbols(self, group: Iterable[Chunk]) -> Symbols | None:
        chunk = next((chunk for chunk in group if chunk.type is ChunkType.SYMBOLS), None)
        symbols: Symbols | None = None if chunk is None else self._decoded(chunk, decode_symbols)
        return symbols


def _joined(parts: list[Records], dtype: np.dtype[np.void]) -> Records:
    """Join, and let go of each part as it is copied, so that no second copy is ever held."""
    joined = np.empty(sum(map(len, parts)), dtype)
    at = 0
    parts.reverse()
    while parts:
        part = parts.pop()
        joined[at : at + len(part)] = part
        at += len(part)
    return joined


def _notes(head: Begin, ends_early: str | None, missing: list[str]) -> Iterable[str]:
    if head.partial:
        yield (
            f"the recording ends early: refleak did not write its end, so this is what was known"
            f" {head.facts.duration_ns / 1e9:.1f} s after the start"
        )
    if ends_early is not None or missing:
        lacks = f"; missing: {', '.join(missing)}" if missing else ""
        yield f"the recording ends early: {ends_early or 'data are missing'}{lacks}"
