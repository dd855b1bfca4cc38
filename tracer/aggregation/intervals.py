"""Disjoint address ranges, each with what it came from."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

Origin = TypeVar("Origin")


class Piece(NamedTuple, Generic[Origin]):
    """The addresses from `start` up to, not including, `end`."""

    start: int
    end: int
    origin: Origin


class Intervals(Generic[Origin]):
    """Disjoint pieces in order of address."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._pieces: list[Piece[Origin]] = []

    def cut(self, start: int, end: int) -> list[Piece[Origin]]:
        """Remove all between `start` and `end`, and return it, in order of address."""
        if start >= end:
            return []
        first = bisect_right(self._starts, start)
        if first and self._pieces[first - 1].end > start:
            first -= 1
        after = bisect_left(self._starts, end)
        met = self._pieces[first:after]
        if not met:
            return []
        left, right = met[0], met[-1]
        rest = []
        if left.start < start:
            rest.append(Piece(left.start, start, left.origin))
        if right.end > end:
            rest.append(Piece(end, right.end, right.origin))
        self._replace(first, after, rest)
        return [Piece(max(piece.start, start), min(piece.end, end), piece.origin) for piece in met]

    def put(self, piece: Piece[Origin]) -> None:
        """Add a piece in place of all that it covers."""
        if piece.start >= piece.end:
            return
        self.cut(piece.start, piece.end)
        place = bisect_left(self._starts, piece.start)
        self._replace(place, place, [piece])

    def fill(self, piece: Piece[Origin]) -> None:
        """Add those parts of a piece that nothing covers."""
        covered = self.cut(piece.start, piece.end)
        self.put(piece)
        for part in covered:
            self.put(part)

    def joined(self) -> Iterator[Piece[Origin]]:
        """Yield the pieces in order of address, neighbours of one origin as one."""
        last: Piece[Origin] | None = None
        for piece in self._pieces:
            if last is not None and last.end == piece.start and last.origin is piece.origin:
                last = Piece(last.start, piece.end, last.origin)
                continue
            if last is not None:
                yield last
            last = piece
        if last is not None:
            yield last

    def _replace(self, first: int, after: int, pieces: list[Piece[Origin]]) -> None:
        self._pieces[first:after] = pieces
        self._starts[first:after] = [piece.start for piece in pieces]
