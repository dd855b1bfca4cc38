"""Symbolized stacks by stack id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import PurePath

from tracer.analysis.identity import frame_key
from tracer.analysis.runtime import is_machinery
from tracer.late_dataclasses import dataclass
from tracer.model.findings import FrameList, StackCount
from tracer.model.frames import Frame, Symbols
from tracer.model.records import FRAME_ADDRESS_MASK, FRAME_BINARY_SHIFT, FRAME_EXACT, StackStatus
from tracer.model.snapshot import Binary, Stack

STATUS_WORDS: Mapping[StackStatus, str] = {
    StackStatus.COMPLETE: "complete",
    StackStatus.TRUNCATED: "truncated",
    StackStatus.NO_TABLE: "no-table",
    StackStatus.FAULT: "fault",
    StackStatus.UNSUPPORTED: "unsupported",
    StackStatus.FRAME_POINTER: "frame-pointer",
}
LOST = "lost"
CallSite = tuple[tuple[str, int], ...]
"""File and line of each frame; "" and the offset in its function where it has no line."""
Lines = tuple[tuple[str, ...], CallSite]
"""Functions and call site: equal for stacks that read the same."""


@dataclass(frozen=True, slots=True)
class SymbolizedStack:
    """Frames of one stack, leaf first, inlined ones included."""

    frames: FrameList
    status: str
    """A word of STATUS_WORDS, or "lost" where the stack itself was not kept."""
    complete: bool
    keys: tuple[str, ...]
    """What identifies each frame over runs; as long as `frames`."""
    number: int = 0
    """Equal for stacks of equal frames, within one analysis."""
    call_site: CallSite = ()

    def own_calls(self) -> list[tuple[str, Frame]]:
        """Return the frames of the program's own, leaf first, each with its key; all frames, if it has none."""
        keyed = list(zip(self.keys, self.frames, strict=True))
        return [pair for pair in keyed if not is_machinery(pair[1])] or keyed


_LOST_STACK = SymbolizedStack((), LOST, False, ())


@dataclass(frozen=True, slots=True)
class _Call:
    """What is known of one address: its frames, and their keys, numbers and lines."""

    frames: tuple[Frame, ...]
    keys: tuple[str, ...]
    numbers: tuple[int, ...]
    lines: CallSite
    is_generated: bool


_is_generated = attrgetter("is_generated")


class SymbolizedStacks:
    """Symbolize the stacks of a snapshot, each once."""

    def __init__(
        self, stacks: Mapping[int, Stack], binaries: tuple[Binary, ...], symbols: Symbols,
        traced: Collection[str] = (), counting: Collection[str] = (),
    ) -> None:  # fmt: skip
        """`traced`: the functions that have probes, which their stacks leave out; `counting`: the gets and puts among
        them."""
        self._stacks = stacks
        self._traced = frozenset(traced)
        self._counting = {name.strip("_") for name in counting}
        self._doors: dict[str, bool] = {}
        self._binaries = {binary.id: binary for binary in binaries}
        self._symbols = symbols
        self._done: dict[int, SymbolizedStack] = {}
        self._calls: dict[int, _Call] = {}
        self._frame_numbers: dict[Frame, int] = {}
        self._numbers: dict[tuple[int, ...], int] = {(): 0}
        self._keys: dict[str, str] = {}

    def get(self, stack_id: int) -> SymbolizedStack:
        """Return a stack's frames; an empty stack with status "lost" for an id that is not known."""
        done = self._done.get(stack_id)
        if done is None:
            done = self._done[stack_id] = self._symbolize(stack_id)
        return done

    def innermost(self, stack_id: int, calls: int) -> tuple[int, ...]:
        """Return the keys of a stack's innermost calls: what their frames are the same for."""
        stack = self._stacks.get(stack_id)
        return () if stack is None else stack.frames[:calls]

    def frames_of(self, keys: tuple[int, ...]) -> FrameList:
        """Return the frames of some calls of a stack, the innermost among them."""
        return tuple(chain.from_iterable(call.frames for call in self._calls_on(keys)))

    def frames(self, stack_id: int) -> FrameList | None:
        """Return a stack's frames, or None where nothing is known of it."""
        return self.get(stack_id).frames or None

    def calls_of(self, function: int) -> str | None:
        """Return what of the heap a call of a function is for, by the frame of its first instruction."""
        return self._symbols.get(function, (self._miss(function),))[-1].calls

    def is_door(self, calls: Sequence[tuple[str, Frame]]) -> bool:
        """Tell whether the innermost of some calls is another door to a get or put, as `source_unref` is one to
        `source_unref_internal`: one of the names is the other with something behind it. What is called by a get or
        put is no door, but does its work."""
        (_, frame), *callers = calls
        name, caller = (one.function or "" for one in (frame, callers[0][1] if callers else frame))
        if caller.strip("_") in self._counting:
            return False
        known = self._doors.get(name)
        if known is None:
            known = self._doors[name] = self._is_another_name(name.strip("_"))
        return known

    def _is_another_name(self, name: str) -> bool:
        """Tell whether a get or put is called so but for what one of the names has behind it; a word is too little."""
        if name in self._counting:
            return False
        pairs = [sorted((name, one), key=len) for one in self._counting]
        return any("_" in shorter and longer.startswith(f"{shorter}_") for shorter, longer in pairs)

    def call_site(self, stack_id: int) -> CallSite:
        """Return what tells a stack from others of the same functions, as far as a reader can see."""
        return self.get(stack_id).call_site

    def lines(self, stack_id: int) -> Lines:
        return self.get(stack_id).keys, self.call_site(stack_id)

    def _symbolize(self, stack_id: int) -> SymbolizedStack:
        stack = self._stacks.get(stack_id)
        if stack is None:
            return _LOST_STACK
        calls = self._calls_on(stack.frames)
        numbers = tuple(chain.from_iterable([call.numbers for call in calls]))
        number = self._numbers.setdefault(numbers, len(self._numbers))
        frames = tuple(chain.from_iterable([call.frames for call in calls]))
        keys = tuple(chain.from_iterable([call.keys for call in calls]))
        site = tuple(chain.from_iterable([call.lines for call in calls]))
        return SymbolizedStack(frames, STATUS_WORDS[stack.status], stack.complete, keys, number, site)

    def _calls_on(self, keys: Sequence[int]) -> list[_Call]:
        calls = [self._calls.get(key) or self._call(key) for key in keys]
        if calls and keys[0] & FRAME_EXACT:
            calls[0] = self._around_copy(calls[0])
        if not any(map(_is_generated, calls)):
            return calls
        return [call for n, call in enumerate(calls) if not n or not _is_trampoline(call, calls[n - 1])]

    def _call(self, key: int) -> _Call:
        frames = self._symbols.get(key) or (self._miss(key),)
        keys = [frame_key(frame) for frame in frames]
        numbers = tuple([self._frame_numbers.setdefault(frame, len(self._frame_numbers)) for frame in frames])
        known = tuple([self._keys.setdefault(key, key) for key in keys])
        call = self._calls[key] = _Call(
            frames, known, numbers, call_site(frames), bool(frames) and frames[0].kind == "jit"
        )  # fmt: skip
        return call

    def _around_copy(self, call: _Call) -> _Call:
        """Leave out the traced function where it was inlined, with what is inlined in it: as where it was called."""
        inlined = [n for n, frame in enumerate(call.frames[:-1]) if frame.inlined and frame.function in self._traced]
        first = inlined[-1] + 1 if inlined else 0
        return _Call(
            call.frames[first:], call.keys[first:], call.numbers[first:], call.lines[first:], call.is_generated
        )  # fmt: skip

    def _miss(self, key: int) -> Frame:
        binary = self._binaries.get(key >> FRAME_BINARY_SHIFT)
        module = (PurePath(binary.path).name or None) if binary else None
        return Frame(
            None, module, binary.path if binary else None, binary.build_id if binary else None,
            address=key & FRAME_ADDRESS_MASK, why_unknown="not symbolized",
        )  # fmt: skip


def lines_of(frames: FrameList) -> Lines:
    return tuple(map(frame_key, frames)), call_site(frames)


def same_lines(calls: Iterable[tuple[FrameList, int]]) -> tuple[StackCount, ...]:
    """Sum calls whose stacks read the same, most first."""
    counts: Counter[Lines] = Counter()
    stacks: dict[Lines, FrameList] = {}
    for frames, count in calls:
        lines = lines_of(frames)
        counts[lines] += count
        stacks.setdefault(lines, frames)
    return tuple(StackCount(stacks[lines], count) for lines, count in counts.most_common())


def call_site(frames: FrameList) -> CallSite:
    """Return the lines of a stack: equal for calls that read the same, if their functions do."""
    return tuple(map(_line, frames))


def _line(frame: Frame) -> tuple[str, int]:
    if frame.line is not None:
        return frame.file or "", frame.line
    return "", (0 if frame.kind == "jit" else frame.address) if frame.offset is None else frame.offset


def _is_trampoline(call: _Call, callee: _Call) -> bool:
    """Tell whether a call is but the trampoline, by which profilers know it, of the script's function that it calls."""
    if not call.is_generated or not callee.frames or callee.frames[-1].kind != "guest":
        return False
    return _script_function(call.frames[0]) == _script_function(callee.frames[-1])


def _script_function(frame: Frame) -> tuple[str | None, str | None, str | None]:
    return frame.function, frame.file, frame.language
