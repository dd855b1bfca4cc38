"""The frames of interpreters that the kernel side has sent, and the stacks that they belong to.

Who reads the rings only keeps what comes, for somebody may be held meanwhile: stacks are put together when there is
time, or when they are asked for, and lines are looked up for the frames that are asked for.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence

from tracer.interpreters.code import frames_of, read_code
from tracer.interpreters.languages import LANGUAGE_OF
from tracer.interpreters.merging import Run, merged
from tracer.interpreters.script_code import ScriptCode
from tracer.model import records
from tracer.model.frames import Frame
from tracer.model.records import FRAME_BINARY_SHIFT, SCRIPT_BINARY, InterpreterRecord, StackStatus
from tracer.model.snapshot import Stack

_PLACE_BYTES, _FRAME_BYTES = 4, records.INTERPRETER_FRAME.itemsize
_HEAD = struct.Struct("<QIIQII")
"""Number, kind, depth, native stack, its depth, whether it was cut: what comes before `places`."""
_PLACES_AT = _HEAD.size
_FRAMES_AT = _PLACES_AT + (records.MAX_FRAMES + 1) * _PLACE_BYTES
_KIND = struct.Struct("<QI")
_FRAME = struct.Struct("<QII")
"""INTERPRETER_FRAME: its code, where in it, and its place."""
_MOST_RUNS = 1 << 17
"""Of those that are remembered, some 250 bytes each."""
_CODES_AT_ONCE = 64
"""Whose lines are looked up before somebody else has a turn."""
_LOST = Frame(None, kind="guest", why_unknown="its code was not kept")
_NONE: Mapping[int, tuple[int, ...]] = {}
_HIDDEN = -1
_Call = tuple[int, int]
"""A code's number, and where in it."""


class InterpreterFrames:
    """Frames are numbered as they are met; `frames` are those of Snapshot.script_frames."""

    def __init__(self) -> None:
        self._frames: list[Frame] = []
        self._codes: dict[int, ScriptCode | None] = {}
        self._sent: dict[int, bytes] = {}
        """Codes as they came, until one of their frames is met."""
        self._calls: dict[_Call, tuple[int, bool]] = {}
        self._runs_met: dict[bytes, Run] = {}
        """By their frames as they were sent."""
        self._shapes_met: dict[bytes, tuple[tuple[int, ...], bool]] = {}
        """The frames of runs and whether they replace a loop, by their frames without the place: the same calls lie
        elsewhere on each stack."""
        self._shown: list[_Call] = []
        """By the numbers of their frames."""
        self._waiting: deque[bytes] = deque()
        """Stacks as they came, without what is empty in them."""
        self._troubles: Counter[str] = Counter()

    def add(self, blobs: Iterable[bytes]) -> None:
        """Take records of the interpreter ring, in their order."""
        for blob in blobs:
            if len(blob) < _HEAD.size:
                continue
            number, kind = _KIND.unpack_from(blob)
            if kind == InterpreterRecord.STACK:
                self._waiting.append(_trimmed(blob))
            else:
                self._sent[number] = blob

    @property
    def waiting(self) -> int:
        """How many stacks are still to be merged."""
        return len(self._waiting)

    def settle(
        self, stacks: MutableMapping[int, Stack], completed: Mapping[int, tuple[int, ...]] = _NONE, most: int = -1
    ) -> None:
        """Merge stacks that wait with their native ones, which must have been read after them; `most`: -1 for all.

        `completed`: the places of the frames of those native stacks that were walked further than the kernel side did.
        """
        while self._waiting and most:
            most -= 1
            blob = self._waiting.popleft()
            number, _, depth, native_number, native_depth, is_cut = _HEAD.unpack_from(blob)
            native = stacks.get(native_number)
            if native is None:
                continue
            behind = _HEAD.size + native_depth * _PLACE_BYTES
            places = completed.get(native_number)
            if places is None:
                places = struct.unpack_from(f"<{native_depth}I", blob, _HEAD.size)
            stacks[number] = self._merged(native, places, self._runs(blob[behind:], depth), bool(is_cut))

    def _merged(self, native: Stack, places: Sequence[int], runs: Sequence[Run], is_cut: bool) -> Stack:
        frames, missed = merged(native.frames, places[: len(native.frames)], runs)
        if missed:
            self._troubles["whose place on the C stack was not found"] += 1
        status = native.status
        if is_cut:
            self._troubles["that are deeper than refleak follows, or could not be read"] += 1
            status = StackStatus.TRUNCATED if native.complete else status
        return Stack(frames, status)

    def _runs(self, frames: bytes, depth: int) -> list[Run]:
        """Split at the ends of runs; one without an end is left out.

        `frames`: as many INTERPRETER_FRAMEs as `depth` says. Most runs are those of a stack before.
        """
        met, begin, end, runs = self._runs_met.get, 0, 0, []
        for place in struct.unpack(f"<{4 * depth}I", frames)[3::4]:
            end += _FRAME_BYTES
            if place:
                sent = frames[begin:end]
                begin = end
                runs.append(met(sent) or self._kept(sent))
        return runs

    def _kept(self, sent: bytes) -> Run:
        shape, place = sent[:-_PLACE_BYTES], int.from_bytes(sent[-_PLACE_BYTES:], "little") & ~1
        if len(self._runs_met) >= _MOST_RUNS:
            self._runs_met.clear()
            self._shapes_met.clear()
        if shape not in self._shapes_met:
            self._shapes_met[shape] = self._shape(list(_FRAME.iter_unpack(sent)))
        keys, replaces_loop = self._shapes_met[shape]
        run = self._runs_met[sent] = Run(keys, place, replaces_loop)
        return run

    def _shape(self, frames: Sequence[tuple[int, int, int]]) -> tuple[tuple[int, ...], bool]:
        """Return the keys of these frames (code, where in it, place) and whether they replace a loop: none where one of
        them could not be told."""
        last = frames[-1][0]
        calls = [(code, at) for code, at, _ in frames if code]
        if len(calls) < len(frames) - (not last):  # a mark that ends a run has no code
            return (), True
        known = [self._calls.get(call) or self._met(call) for call in calls]
        return tuple([key for key, _ in known if key != _HIDDEN]), all(replaces for _, replaces in known)

    def _met(self, call: _Call) -> tuple[int, bool]:
        """Number a frame that was not met before; return its key, and whether it stands for an evaluation loop."""
        code = self._code(call[0])
        language = LANGUAGE_OF[code.kind] if code is not None else None
        if code is not None and language is not None and not language.is_shown(code):
            key = _HIDDEN
        else:
            key = SCRIPT_BINARY << FRAME_BINARY_SHIFT | len(self._shown)
            self._shown.append(call)
        self._calls[call] = key, language is None or language.replaces_loop
        return self._calls[call]

    def _code(self, number: int) -> ScriptCode | None:
        if number in self._sent:
            self._codes[number] = read_code(self._sent.pop(number)) or self._codes.get(number)
        return self._codes.get(number)

    @property
    def frames(self) -> Sequence[Frame]:
        """The frame of each key, in the order of their numbers."""
        self.look_up()
        return self._frames

    def look_up(self, between: Callable[[], None] = lambda: None) -> None:
        """Look up the lines of the frames that have come; call `between` after each part of them."""
        new = self._shown[len(self._frames) :]
        places: dict[int, list[int]] = defaultdict(list)
        for at, (number, _) in enumerate(new):
            places[number].append(at)
        made = [_LOST] * len(new)
        for index, (number, ats) in enumerate(places.items(), 1):
            code = self._code(number)
            if code is not None:
                for at, frame in zip(ats, frames_of(code, [new[at][1] for at in ats]), strict=True):
                    made[at] = frame
            if not index % _CODES_AT_ONCE:
                between()
        self._frames += made

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(f"{count:,} stacks lack frames of an interpreter {why}" for why, count in self._troubles.items())


def _trimmed(blob: bytes) -> bytes:
    """Return a stack's record with its places and frames one behind the other, as many as there are."""
    number, kind, depth, native, native_depth, is_cut = _HEAD.unpack_from(blob)
    depth = max(0, min(depth, (len(blob) - _FRAMES_AT) // _FRAME_BYTES))
    native_depth = min(native_depth, records.MAX_FRAMES)
    places = blob[_PLACES_AT : _PLACES_AT + native_depth * _PLACE_BYTES]
    frames = blob[_FRAMES_AT : _FRAMES_AT + depth * _FRAME_BYTES]
    return _HEAD.pack(number, kind, depth, native, native_depth, is_cut) + places + frames
