"""Writes a recording while the trace goes on, so that a crash or a full disk keeps what was written."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path

from tracer.errors import CannotWrite
from tracer.files.json_codec import to_json
from tracer.model.frames import Symbols
from tracer.model.recorded_names import recorded_name
from tracer.model.selection import KEEPS_ALL, Selection
from tracer.model.snapshot import Snapshot, Stack
from tracer.recording.chunk_file import ChunkFile, OpenFile, cannot_write, open_file
from tracer.recording.chunks import PLAIN_VERSION, VERSION, ChunkType, encode_chunk
from tracer.recording.columns import encode_records
from tracer.recording.output_place import is_in_place, output_place
from tracer.recording.recording import BULK, Info, arrays_of
from tracer.recording.stack_table import encode_stacks
from tracer.recording.symbol_table import encode_symbols

_STACKS_AT_ONCE = 2048
"""In one chunk: some ten milliseconds, in which whoever is held waits."""
_FACTS_AT_ONCE = 1024
_SPARE_BYTES = 32 << 20
"""Checkpoints that were overtaken may take so much room before the file is written anew without them."""


def _nothing() -> None:
    """Do nothing."""


class RecordingWriter:
    """Owns one file. Every method may raise CannotWrite, which says what the file still holds.

    Stacks are appended once, as they come. A checkpoint is a whole Snapshot but for them, and overtakes the one
    before; the last Snapshot overtakes them all. `selection` is that of the snapshots to come.
    """

    def __init__(
        self, path: Path, info: Info, selection: Selection = KEEPS_ALL, *, force: bool = False,
        opener: OpenFile = open_file,
    ) -> None:
        self._path, self._opener = path, opener
        self._version = PLAIN_VERSION if selection.keeps_all else VERSION
        self._stacks_written: set[int] = set()
        self._kept: list[tuple[int, int]] = []
        self._overtaken_bytes = self._group_bytes = 0
        self._holds = ""
        self._between: Callable[[], None] = _nothing
        try:
            self._place = output_place(path) if force else path
            self._file = ChunkFile(self._place, opener, replace=force, version=self._version)
            self._keep(ChunkType.INFO, json.dumps(to_json(info)).encode())
        except OSError as error:
            raise cannot_write(path, error) from None

    def _keep(self, kind: ChunkType, payload: bytes) -> None:
        start = self._file.size_bytes
        self._file.append(encode_chunk(kind, payload))
        self._kept.append((start, self._file.size_bytes))

    def append_stacks(self, stacks: Mapping[int, Stack]) -> None:
        """Write those that were not yet written. A stack's id stands for the same frames throughout a trace."""
        fresh = ((id_, stack) for id_, stack in stacks.items() if id_ not in self._stacks_written)
        try:
            while part := dict(islice(fresh, _STACKS_AT_ONCE)):
                self._keep(ChunkType.STACKS, encode_stacks(part))
                self._stacks_written.update(part)
                self._between()
        except OSError as error:
            raise cannot_write(self._path, error, self._holds) from None

    def checkpoint(self, snapshot: Snapshot, between: Callable[[], None] = _nothing) -> None:
        """Write what is known while the target runs on: what a reader gets if nothing follows.

        `between` is called after each chunk, so that the caller can see to what does not wait; it may add stacks, which
        the next checkpoint has.
        """
        self._between = between
        snapshot = replace(snapshot, stacks=dict(snapshot.stacks))
        self.append_stacks(snapshot.stacks)
        self._write(snapshot, None, partial=True, anew=self._overtaken_bytes > max(_SPARE_BYTES, 3 * self._group_bytes))
        self._holds = f"the trace up to {snapshot.duration_ns / 1e9:.1f} s"

    def write_snapshot(self, snapshot: Snapshot, symbols: Symbols | None) -> None:
        """Write the whole result; the file is written anew, without what it overtakes, if the disk has the room."""
        self._between = _nothing
        self.append_stacks(snapshot.stacks)
        self._write(snapshot, symbols, partial=False, anew=self._group_bytes > 0)
        self._holds = "the whole trace"
        if not self._file.is_there:
            raise CannotWrite(f"cannot write {self._path}: it was moved or removed meanwhile")

    def _write(self, snapshot: Snapshot, symbols: Symbols | None, *, partial: bool, anew: bool) -> None:
        if anew and self._write_anew(snapshot, symbols, partial):
            return
        try:
            size = _append_group(self._file, _group(snapshot, symbols, partial, self._between), self._between)
        except OSError as error:
            raise cannot_write(self._path, error, self._holds) from None
        self._overtaken_bytes += self._group_bytes
        self._group_bytes = size

    def _write_anew(self, snapshot: Snapshot, symbols: Symbols | None, partial: bool) -> bool:
        """Write a new file and put it in the old one's place; on failure the old one stays as it was."""
        fresh = None
        try:
            if is_in_place(self._place):
                return False
            path = self._place.with_name(f".{self._place.name[:100]}.{secrets.token_hex(8)}.new")
            fresh = ChunkFile(path, self._opener, replace=False, version=self._version)
            kept = []
            for start, end in self._kept:
                kept.append((fresh.size_bytes, fresh.size_bytes + end - start))
                fresh.copy_from(self._file, start, end)
            size = _append_group(fresh, _group(snapshot, symbols, partial, self._between), self._between)
            fresh.move_to(self._place)
        except OSError:
            if fresh is not None:
                fresh.discard()
            return False
        self._file.close()
        self._file, self._kept = fresh, kept
        self._overtaken_bytes, self._group_bytes = 0, size
        return True

    def close(self) -> None:
        self._file.close()

    def discard(self) -> None:
        """Remove the file."""
        self._file.discard()


def _append_group(file: ChunkFile, group: Iterator[tuple[ChunkType, bytes]], between: Callable[[], None]) -> int:
    """Append BEGIN, arrays, symbols, END; return their bytes."""
    start = file.size_bytes
    for kind, payload in group:
        file.append(encode_chunk(kind, payload))
        between()
    return file.size_bytes - start


def _group(
    snapshot: Snapshot, symbols: Symbols | None, partial: bool, between: Callable[[], None]
) -> Iterator[tuple[ChunkType, bytes]]:
    # An open path is one of this process; elsewhere it may name another file.
    binaries = tuple(replace(binary, open_path=None) for binary in snapshot.binaries)
    portable = replace(snapshot, binaries=binaries)
    arrays = arrays_of(snapshot)
    begin = {
        "facts": {
            recorded_name(f): _fact(getattr(portable, f.name), between) for f in fields(Snapshot) if f.name not in BULK
        },
        "partial": partial,
        "stacks": len(snapshot.stacks),
        "symbols": symbols is not None,
        "rows": to_json({name: len(array) for name, array in arrays.items()}),
    }
    yield ChunkType.BEGIN, json.dumps(begin, separators=(",", ":")).encode()
    for name, array in arrays.items():
        yield from ((ChunkType.ARRAY, payload) for payload in encode_records(name, array))
    if symbols is not None:
        yield ChunkType.SYMBOLS, encode_symbols(symbols)
    yield ChunkType.END, b"{}"


def _fact(value: object, between: Callable[[], None]) -> object:
    """Return a value as `to_json` does; of many things some at a time, with a call of `between` after each part."""
    if not isinstance(value, tuple):
        return to_json(value)
    made = []
    for at in range(0, len(value), _FACTS_AT_ONCE):
        made += [to_json(one) for one in value[at : at + _FACTS_AT_ONCE]]
        between()
    return made
