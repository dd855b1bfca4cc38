"""Reference sites of one type, where references are taken and given back, seen from near and from far."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from enum import IntEnum

from tracer.analysis.stacks import SymbolizedStacks
from tracer.model.frames import Frame

_HEADERS = (".h", ".hh", ".hpp", ".hxx")
Call = tuple[str, int]
"""Function and line (or address) of a frame."""
Path = tuple[Call, ...]
"""Leaf first."""
_CALLERS = 3
"""Functions that call what is taken for the wrapper of one of several types, at least."""


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

    def __init__(
        self, table: SymbolizedStacks, stacks: Iterable[int], wrapped: bool = True,
        together: Iterable[Sequence[int]] = (), opposite: Iterable[int] = (), births: Iterable[int] = (),
    ) -> None:  # fmt: skip
        """`wrapped`: calls that all stacks share are wrappers; makers of objects are not.

        `together`: stacks of one object each. Where two types have one name, no object has stacks of both: each has
        wrappers of its own. `opposite`: stacks of puts, where these are of gets: what takes and gives back wraps
        neither. `births`: stacks that make objects: a function that does so itself takes and gives back for itself.
        """
        self._table = table
        self._paths: dict[int, Path] = {}
        self._keys: dict[tuple[int, Level], Hashable] = {}
        paths = {self.path(stack) for stack in stacks} if wrapped else set()
        makers = {path[0][0] for stack in births if (path := self.path(stack))} if wrapped else set()
        shared = _shared(paths, makers=makers)
        self._shared = next((path[:shared] for path in paths if path), ())
        self._wrappers = dict.fromkeys({path[0] for path in paths if path}, shared)
        if not shared:
            self._wrappers |= self._by_type(paths, together, opposite)
        self._handed: dict[int, int] = {}

    def path(self, stack: int) -> Path:
        """Return (function, line or address) per frame, leaf first: those of the program's own, if it has any."""
        path = self._paths.get(stack)
        if path is None:
            path = self._paths[stack] = tuple((key, _line(frame)) for key, frame in self._own(stack))
        return path

    def _by_type(
        self, paths: set[Path], together: Iterable[Sequence[int]], opposite: Iterable[int]
    ) -> dict[Call, int]:
        """Return how many calls at the leaf are wrappers, by the innermost call, where no object has another one."""
        both = {path[0][0] for stack in opposite if (path := self.path(stack))}
        innermost = {path[0] for path in paths if path and path[0][0] not in both}
        for stacks in together:
            calls = {path[0] for stack in stacks if (path := self.path(stack))}
            if len(calls) > 1:
                innermost -= calls
        return {call: _shared({path for path in paths if path and path[0] == call}, _CALLERS) for call in innermost}

    def wrappers(self) -> list[str]:
        """Return the functions at the leaf that all stacks share."""
        return [function for function, _ in self._shared]

    def hand_up(self, stack: int, frames: int) -> None:
        """Say that so many frames of a stack, from the caller of the wrappers on, hand up to their callers what they
        took: its place is where it came to."""
        self._handed[stack] = frames

    def _own(self, stack: int) -> list[tuple[str, Frame]]:
        return self._table.get(stack).own_calls()

    def _start(self, stack: int) -> int:
        """Return how many frames at the leaf are wrappers: all stacks have them, they were inlined from a header, or
        they are another door to the get or put."""
        own = self._own(stack)
        path = self.path(stack)
        start = min(self._wrappers.get(path[0], 0) if path else 0, max(len(own) - 1, 0))
        while start < len(own) - 1 and (_is_of_header(own[start][1]) or self._table.is_door(own[start:])):
            start += 1
        return start

    def caller(self, stack: int) -> Frame | None:
        """Return the first frame that is no wrapper's."""
        own = self._own(stack)
        return own[min(self._start(stack), len(own) - 1)][1] if own else None

    def from_caller(self, stack: int) -> Path:
        """Return the path without the wrappers at the leaf."""
        return self.path(stack)[self._start(stack) :]

    def frames_from_caller(self, stack: int, frame: int) -> int:
        """Return how many frames of the path without the wrappers are before a frame of the stack."""
        own = {id(one) for _, one in self._own(stack)}
        return sum(id(one) in own for one in self._table.get(stack).frames[:frame]) - self._start(stack)

    def place(self, stack: int) -> int:
        """Return the frame of the path that the reference came to."""
        return min(self._start(stack) + self._handed.get(stack, 0), max(len(self.path(stack)) - 1, 0))

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
        place = self.place(stack)
        inner = path[place : place + 2]
        if level == Level.CALLS:
            return inner
        return inner[0] if level == Level.CALL else inner[0][0]

    def telling(self, stack: int, handed: int | None = None) -> Frame | None:
        """Return the innermost frame that tells the stacks of this role apart: past those that hand up, or so many."""
        own = self._own(stack)
        place = self.place(stack) if handed is None else min(self._start(stack) + handed, max(len(own) - 1, 0))
        return own[place][1] if own else None


def _is_of_header(frame: Frame) -> bool:
    return frame.inlined and (frame.file or "").endswith(_HEADERS)


def _line(frame: Frame) -> int:
    return frame.line if frame.line is not None else -frame.address


def _shared(paths: set[Path], callers: int = 1, makers: Collection[str] = ()) -> int:
    """Return how many calls at the leaf all paths share, up to one by `makers`; none where they are all one path, or
    have fewer `callers`."""
    paths = {path for path in paths if path}
    if len(paths) < 2:
        return 0
    shared = 0
    while True:
        heads = {path[shared] if len(path) > shared + 1 else None for path in paths}
        if len(heads) != 1 or None in heads or any(head and head[0] in makers for head in heads):
            return shared if len({head[0] for head in heads if head}) >= callers else 0
        shared += 1


def common(one: Path, other: Path) -> int:
    """Return how many of the outermost functions two paths share."""
    shared = 0
    for (function, _), (theirs, _) in zip(reversed(one), reversed(other), strict=False):
        if function != theirs:
            break
        shared += 1
    return shared
