"""Mapped ranges of one address space."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from tracer.aggregation.intervals import Intervals, Piece
from tracer.late_dataclasses import dataclass
from tracer.model.records import MappedFlag

PAGE_BYTES = 4096
_MMAP_FLAGS = (1 << 26) - 1
_BY_HEAP = 1 << 32
"""MAPPED_BY_HEAP of bpf/abi.h."""
_MOST_UNMAPPED = 4096
_FIXED = 0x10
_OVER_BY_ZEROS = 0x30
"""MAP_FIXED and MAP_ANONYMOUS: what stood there is gone. A file may hold the same."""


@dataclass(frozen=True, eq=False)
class Birth:
    """The call that mapped memory; two calls are never the same birth."""

    time_ns: int
    stack: int
    tid: int
    site: int
    flags: int = 0
    reserved_ns: int = 0
    """When the mapping was made that this one was put over, or the one that that one was put over; 0: over none."""

    def over(self, pieces: list[Piece[Birth]]) -> Birth:
        """Return the birth of what is put in place of these."""
        if not pieces:
            return self
        below = pieces[0].origin
        return replace(self, reserved_ns=below.reserved_ns or below.time_ns)

    def with_flags(self, mapping_flags: int) -> Birth:
        """Return the birth of a mapping; `mapping_flags`: mmap's, and whether it was made inside of a call of the
        heap."""
        by_heap = MappedFlag.BY_HEAP if mapping_flags & _BY_HEAP else 0
        return replace(self, flags=mapping_flags & _MMAP_FLAGS | by_heap)

    @property
    def counts(self) -> bool:
        """Whether the program of this address space made it, by itself."""
        return not self.flags & (MappedFlag.INHERITED | MappedFlag.BY_HEAP)


@dataclass(frozen=True)
class MappedTotals:
    """What an address space itself mapped, and freed of that, but for what it inherited or its heap made."""

    made: int
    made_bytes: int
    freed: int
    """Mappings of which nothing is left."""
    freed_bytes: int


@dataclass(frozen=True)
class Removal:
    """What a call took away. `stack`: of an unmap, or of a map over it; 0: what was there is moved."""

    start: int
    end: int
    pieces: list[Piece[Birth]]
    time_ns: int = 0
    stack: int = 0


def _whole_pages(length: int) -> int:
    return -(-length // PAGE_BYTES) * PAGE_BYTES


def _own_bytes(pieces: list[Piece[Birth]]) -> int:
    return sum(piece.end - piece.start for piece in pieces if piece.origin.counts)


class MappedSpace:
    """The mapped ranges of one address space; lengths are rounded up to whole pages."""

    def __init__(self) -> None:
        self._ranges: Intervals[Birth] = Intervals()
        self._removed: dict[int, Removal] = {}
        self._unmapped: deque[Removal] = deque(maxlen=_MOST_UNMAPPED)
        self._made = 0
        self._made_bytes = 0

    def map(self, start: int, length: int, birth: Birth) -> None:
        size = _whole_pages(length)
        if not size:
            return
        pieces = self._ranges.cut(start, start + size)
        if birth.flags & _OVER_BY_ZEROS == _OVER_BY_ZEROS and pieces:
            self._keep_unmapped(Removal(start, start + size, pieces, birth.time_ns, birth.stack))
        self._ranges.put(Piece(start, start + size, birth.over(pieces) if birth.flags & _FIXED else birth))
        if birth.counts:
            self._made += 1
            self._made_bytes += size

    def remove(self, tid: int, start: int, length: int, time_ns: int = 0, stack: int = 0) -> None:
        """Free a range at the entry of thread `tid`'s call; what is there is kept for `undo` and `move`. `stack`: of
        an unmap."""
        end = start + _whole_pages(length)
        self._keep_unmapped(self._removed.get(tid))
        self._removed[tid] = Removal(start, end, self._ranges.cut(start, end), time_ns, stack)

    def _keep_unmapped(self, removal: Removal | None) -> None:
        if removal is not None and removal.stack and removal.pieces:
            self._unmapped.append(replace(removal, pieces=[]))

    def unmapped(self) -> list[Removal]:
        """Return the last unmaps of something that was known to be mapped, without their pieces; none that failed."""
        last = [replace(one, pieces=[]) for one in self._removed.values() if one.stack and one.pieces]
        return [*self._unmapped, *last]

    def undo(self, tid: int) -> None:
        """Give back what thread `tid` removed last, since its call failed; what came since stays."""
        removal = self._removed.pop(tid, None)
        for piece in removal.pieces if removal else ():
            self._ranges.fill(piece)

    def move(self, tid: int, start: int, length: int, birth: Birth) -> None:
        """Put what thread `tid` removed last at `start`, cut or grown to `length`.

        Each page keeps its birth, and those by which the range grew have that of the last page. Pages that were
        not known before count as mapped by `birth`: by this very call.
        """
        size = _whole_pages(length)
        old = self._removed.pop(tid, Removal(start, start, []))
        carried = [
            Piece(piece.start - old.start + start, min(piece.end - old.start, size) + start, piece.origin)
            for piece in old.pieces
            if piece.start - old.start < size
        ]
        pieces = list(carried)
        if pieces and old.pieces[-1].end == old.end and size > old.end - old.start:
            pieces[-1] = pieces[-1]._replace(end=start + size)
        if sum(piece.end - piece.start for piece in pieces) < size:
            self._made += 1
            self._made_bytes += size - sum(piece.end - piece.start for piece in pieces)
        self._made_bytes += _own_bytes(pieces) - _own_bytes(carried)
        self._ranges.put(Piece(start, start + size, birth.over(self._ranges.cut(start, start + size))))
        for piece in pieces:
            self._ranges.put(piece)

    def inherit(self, parent: MappedSpace) -> None:
        """Begin as a copy of `parent`, all of it inherited."""
        births: dict[Birth, Birth] = {}
        for start, end, birth in parent.pieces():
            copy = births.setdefault(birth, replace(birth, flags=birth.flags | MappedFlag.INHERITED))
            self._ranges.fill(Piece(start, end, copy))

    def pieces(self) -> Iterator[Piece[Birth]]:
        """Yield what is mapped, in order of address."""
        return self._ranges.joined()

    def totals(self) -> MappedTotals:
        own = [piece for piece in self.pieces() if piece.origin.counts]
        left = len({piece.origin for piece in own})
        return MappedTotals(self._made, self._made_bytes, self._made - left, self._made_bytes - _own_bytes(own))
