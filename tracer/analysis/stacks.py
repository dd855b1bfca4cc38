"""Symbolized stacks by stack id."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from tracer.analysis.identity import keys_of
from tracer.model.findings import FrameList
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


@dataclass(frozen=True)
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


_LOST_STACK = SymbolizedStack((), LOST, False, ())


class StackBook:
    """Symbolize the stacks of a snapshot, each once."""

    def __init__(
        self, stacks: Mapping[int, Stack], binaries: tuple[Binary, ...], symbols: Symbols,
        traced: Collection[str] = (),
    ) -> None:  # fmt: skip
        """`traced`: the functions that have probes, which their stacks leave out."""
        self._stacks = stacks
        self._traced = frozenset(traced)
        self._binaries = {binary.id: binary for binary in binaries}
        self._symbols = symbols
        self._done: dict[int, SymbolizedStack] = {}
        self._missed: dict[int, tuple[Frame, ...]] = {}
        self._numbers: dict[FrameList, int] = {(): 0}

    def get(self, stack_id: int) -> SymbolizedStack:
        """Return a stack's frames; an empty stack with status "lost" for an id that is not known."""
        done = self._done.get(stack_id)
        if done is None:
            done = self._done[stack_id] = self._symbolize(stack_id)
        return done

    def frames(self, stack_id: int) -> FrameList | None:
        """Return a stack's frames, or None where nothing is known of it."""
        return self.get(stack_id).frames or None

    def _symbolize(self, stack_id: int) -> SymbolizedStack:
        stack = self._stacks.get(stack_id)
        if stack is None:
            return _LOST_STACK
        known = [self._symbols.get(key) or self._miss(key) for key in stack.frames]
        if known and stack.frames[0] & FRAME_EXACT:
            known[0] = self._around_copy(known[0])
        frames = tuple(frame for frames in known for frame in frames)
        number = self._numbers.setdefault(frames, len(self._numbers))
        return SymbolizedStack(frames, STATUS_WORDS[stack.status], stack.complete, keys_of(frames), number)

    def _around_copy(self, frames: FrameList) -> FrameList:
        """Leave out the traced function where it was inlined, with what is inlined in it: as where it was called."""
        inlined = [n for n, frame in enumerate(frames[:-1]) if frame.inlined and frame.function in self._traced]
        return frames[inlined[-1] + 1 :] if inlined else frames

    def _miss(self, key: int) -> tuple[Frame, ...]:
        missed = self._missed.get(key)
        if missed is None:
            binary = self._binaries.get(key >> FRAME_BINARY_SHIFT)
            module = PurePath(binary.path).name if binary else None
            missed = self._missed[key] = (
                Frame(
                    None, module, binary.path if binary else None, binary.build_id if binary else None,
                    address=key & FRAME_ADDRESS_MASK, why_unknown="not symbolized",
                ),
            )  # fmt: skip
        return missed
