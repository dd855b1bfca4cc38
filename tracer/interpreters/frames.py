"""The frames of interpreters that the kernel side has sent, and the stacks that they belong to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass

import numpy as np

from tracer.interpreters.code import ScriptCode, read_code
from tracer.interpreters.merging import Run, merged
from tracer.model import records
from tracer.model.frames import Frame
from tracer.model.records import FRAME_BINARY_SHIFT, GUEST_BINARY, GuestRecord, StackStatus
from tracer.model.snapshot import Records, Stack

_HEAD_BYTES = records.GUEST_STACK.itemsize - records.GUEST_STACK["frames"].itemsize
_KIND_OFFSET = 8
_LOST = Frame(None, kind="guest", why_unknown="its code was not kept")
_NONE: Mapping[int, tuple[int, ...]] = {}
_Frames = list[tuple[int, int, int]]


@dataclass(frozen=True)
class _Pending:
    """A stack whose native part may still be in its own ring."""

    id: int
    native: int
    places: tuple[int, ...]
    frames: _Frames
    is_cut: bool


class InterpreterFrames:
    """Guest frames are numbered as they come; `frames` are those of Snapshot.guests."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self._codes: dict[int, ScriptCode] = {}
        self._keys: dict[tuple[int, int], int] = {}
        self._pending: list[_Pending] = []
        self._troubles: Counter[str] = Counter()

    def add(self, blobs: Iterable[bytes]) -> None:
        """Take records of the guest ring, in their order."""
        for blob in blobs:
            if int.from_bytes(blob[_KIND_OFFSET : _KIND_OFFSET + 4], "little") == GuestRecord.STACK:
                self._pending.append(_read_stack(blob))
            elif (code := read_code(blob)) is not None:
                self._codes[int.from_bytes(blob[:8], "little")] = code

    def settle(self, stacks: MutableMapping[int, Stack], completed: Mapping[int, tuple[int, ...]] = _NONE) -> None:
        """Merge what has come with its native stacks, which must have been read after it.

        `completed`: the places of the frames of those native stacks that were walked further than the kernel side did.
        """
        for stack in self._pending:
            native = stacks.get(stack.native)
            if native is not None:
                stacks[stack.id] = self._merged(native, stack, completed.get(stack.native, stack.places))
        self._pending.clear()

    def _merged(self, native: Stack, stack: _Pending, places: tuple[int, ...]) -> Stack:
        frames, missed = merged(native.frames, places[: len(native.frames)], list(self._runs(stack)))
        if missed:
            self._troubles["whose place on the C stack was not found"] += 1
        status = native.status
        if stack.is_cut:
            self._troubles["that are deeper than refleak follows, or could not be read"] += 1
            status = StackStatus.TRUNCATED if native.complete else status
        return Stack(frames, status)

    def _runs(self, stack: _Pending) -> Iterable[Run]:
        """Split at the ends of runs; one with a frame that could not be told, or without an end, is left out."""
        run: _Frames = []
        for code, where, place in stack.frames:
            if code or not place:
                run.append((code, where, place))
            if not place:
                continue
            if all(code for code, _, _ in run):
                known = [self._codes.get(code) for code, _, _ in run]
                is_python = not any(code is not None and code.kind is not GuestRecord.PYTHON for code in known)
                shown = (frame for frame, code in zip(run, known, strict=True) if code is None or code.is_shown)
                yield Run(tuple(self._key(code, where) for code, where, _ in shown), place & ~1, is_python)
            run = []

    def _key(self, code: int, where: int) -> int:
        key = self._keys.get((code, where))
        if key is None:
            known = self._codes.get(code)
            key = self._keys[code, where] = GUEST_BINARY << FRAME_BINARY_SHIFT | len(self.frames)
            self.frames.append(known.frame(where) if known is not None else _LOST)
        return key

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(f"{count:,} stacks lack frames of an interpreter {why}" for why, count in self._troubles.items())


def _read_stack(blob: bytes) -> _Pending:
    row: Records = np.frombuffer(blob.ljust(records.GUEST_STACK.itemsize, b"\0"), records.GUEST_STACK, 1)
    depth = min(int(row["depth"][0]), (len(blob) - _HEAD_BYTES) // records.GUEST_FRAME.itemsize)
    native_depth = min(int(row["native_depth"][0]), records.MAX_FRAMES)
    return _Pending(
        int(row["id"][0]), int(row["native"][0]), tuple(row["places"][0][:native_depth].tolist()),
        row["frames"][0][:depth].tolist(), bool(row["is_cut"][0]),
    )  # fmt: skip
