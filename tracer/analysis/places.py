"""Where references of one type are taken and given back, seen from near and from far."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from enum import IntEnum

from tracer.analysis.runtime import is_machinery
from tracer.analysis.stacks import StackBook
from tracer.model.findings import FrameList
from tracer.model.frames import Frame

Path = tuple[tuple[str, int], ...]
"""Function and line (or address) of frames, leaf first."""


class Level(IntEnum):
    """How much of a stack must agree for two calls to count as the same; each level implies the next."""

    PATH = 0
    """Every function and line of the program's own."""
    CALLS = 1
    """The innermost two."""
    CALL = 2
    """The innermost one."""
    FUNCTION = 3
    """The innermost function, whatever the line."""


class Places:
    """Keys of the stacks of one role (gets, or puts) of one type.

    Frames of stubs and runtimes do not count, nor do those calls at the leaf that all stacks of the role share:
    a wrapper (`map__put`) tells nothing about where a reference was given back.
    """

    def __init__(self, book: StackBook, stacks: Iterable[int]) -> None:
        self._book = book
        self._paths: dict[int, Path] = {}
        self._keys: dict[tuple[int, Level], Hashable] = {}
        self._wrappers = _shared({self.path(stack) for stack in stacks})

    def path(self, stack: int) -> Path:
        """Return (function, line or address) per frame, leaf first: those of the program's own, if it has any."""
        path = self._paths.get(stack)
        if path is None:
            symbolized = self._book.get(stack)
            keyed = list(zip(symbolized.keys, symbolized.frames, strict=True))
            chosen = [pair for pair in keyed if not is_machinery(pair[1])] or keyed
            path = self._paths[stack] = tuple((key, _line(frame)) for key, frame in chosen)
        return path

    def from_caller(self, stack: int) -> Path:
        """Return the path without the calls at the leaf that all stacks of the role share."""
        path = self.path(stack)
        return path[min(self._wrappers, len(path) - 1) :] if path else path

    def key(self, stack: int, level: Level) -> Hashable:
        """Return what two stacks have in common if they agree at a level; a stack that was lost agrees with none."""
        known = self._keys.get((stack, level))
        if known is None:
            known = self._keys[stack, level] = self._key(stack, level)
        return known

    def _key(self, stack: int, level: Level) -> Hashable:
        path = self.path(stack)
        if not path or level == Level.PATH:
            return path or stack
        inner = path[self._wrappers : self._wrappers + 2] or path[-1:]
        if level == Level.CALLS:
            return inner
        return inner[0] if level == Level.CALL else inner[0][0]

    def telling(self, stack: int) -> Frame | None:
        """Return the innermost frame that tells the stacks of this role apart."""
        frames: FrameList = self._book.get(stack).frames
        own = [frame for frame in frames if not is_machinery(frame)] or list(frames)
        return own[min(self._wrappers, len(own) - 1)] if own else None


def _line(frame: Frame) -> int:
    return frame.line if frame.line is not None else -frame.address


def _shared(paths: set[Path]) -> int:
    """Return how many calls at the leaf all paths share; none where they are all one path."""
    paths = {path for path in paths if path}
    if len(paths) < 2:
        return 0
    shared = 0
    while True:
        heads = {path[shared] if len(path) > shared + 1 else None for path in paths}
        if len(heads) != 1 or None in heads:
            return shared
        shared += 1


def common(one: Path, other: Path) -> int:
    """Return how many of the outermost functions two paths share."""
    shared = 0
    for (function, _), (theirs, _) in zip(reversed(one), reversed(other), strict=False):
        if function != theirs:
            break
        shared += 1
    return shared
