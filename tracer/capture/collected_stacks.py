"""The stacks of a trace, native and of scripts, as the kernel side sends them."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence

from tracer.interpreters.frames import InterpreterFrames
from tracer.jit.seen_frames import SeenFrames
from tracer.mishaps import Mishaps
from tracer.model.records import StackStatus
from tracer.model.snapshot import Stack
from tracer.unwinding.stack_completion import StackCompletion

_HEADER = struct.Struct("<QII")
_AT_ONCE = 16
_IN_A_PART = 512
_MOST_ROUNDS = 4
"""They may come faster than they are put together."""


class CollectedStacks:
    """Keeps each stack once, by its number.

    Those with frames of scripts are put together when there is time, or when they are asked for.
    """

    def __init__(self, completion: StackCompletion, seen: SeenFrames, mishaps: Mishaps) -> None:
        self._completion, self._seen, self._mishaps = completion, seen, mishaps
        self.script_frames = InterpreterFrames()
        self._stacks: dict[int, Stack] = {}
        self._keys: dict[int, int] = {}
        """Frame keys, each one number in memory."""
        self._until_ns = 0

    def take(self, scripts: Sequence[bytes], stacks: Sequence[bytes], began_ns: int) -> None:
        """Take what was in the two rings, the scripts' read first, at some time; dumped stacks were taken before."""
        self._completion.walk(self._mishaps)
        with self._mishaps.attempt():
            self.script_frames.add(scripts)
        for blob in stacks:
            self._keep(blob)
        self._until_ns = began_ns

    def settle(self, seconds: float) -> None:
        """Put stacks of scripts together for so long at most."""
        deadline = time.monotonic() + seconds
        while self.script_frames.waiting and time.monotonic() < deadline:
            self._settle(_AT_ONCE)

    def settle_all(self, between: Callable[[], None]) -> None:
        """Put together what has come; call `between`, which takes what comes meanwhile, after each part of it."""
        for _ in range(0, _MOST_ROUNDS * self.script_frames.waiting, _IN_A_PART):
            if not self.script_frames.waiting:
                break
            self._settle(_IN_A_PART)
            between()
        self.script_frames.look_up(between)

    def _settle(self, most: int) -> None:
        with self._mishaps.attempt():
            self.script_frames.settle(self._stacks, self._completion.places, most)

    @property
    def has_dumps(self) -> bool:
        """Whether a stack was walked here, from a dump of it."""
        return self._completion.has_dumps

    @property
    def stacks(self) -> dict[int, Stack]:
        """All that have come."""
        while self.script_frames.waiting:
            self._settle(-1)
        return self._stacks

    def _keep(self, blob: bytes) -> None:
        number, status, depth = _HEADER.unpack_from(blob)
        if number in self._completion.places:
            return  # sent by two threads at once, and walked further before
        keys = struct.unpack_from(f"<{depth}Q", blob, _HEADER.size)
        frames = tuple(map(self._keys.setdefault, keys, keys))
        stack = self._completion.completed(number, Stack(frames, StackStatus(status)))
        self._stacks[number] = stack
        self._seen.note(stack.frames, self._until_ns, time.monotonic_ns())
