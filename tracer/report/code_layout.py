"""Addresses for formats that know one address space only.

Frames carry link addresses, and those of different binaries overlap. Here each binary is given a place of its own, as
if one process had mapped them all: what runs where it was linked keeps its place, the others follow one another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tracer.late_dataclasses import dataclass
from tracer.model.findings import CodeRange, FrameList
from tracer.model.frames import Frame

_FIRST_BASE = 1 << 44
_SPACING = 1 << 36
_PAGE = 4096
Identity = tuple[str, str | None]
"""Path and build id."""


@dataclass(frozen=True)
class Placed:
    """Addresses [start, end) of the layout that hold code of a binary."""

    path: str
    build_id: str | None
    start: int
    end: int
    file_offset: int | None
    """Of `start`; None where it is not known what of the file was mapped."""


class CodeLayout:
    """Places for the code that some frames lie in. `ranges`: in ascending order, none overlap."""

    def __init__(self, code: Iterable[CodeRange], frames: Iterable[Frame]) -> None:
        addresses: defaultdict[Identity, list[int]] = defaultdict(list)
        for frame in frames:
            if frame.path is not None:
                addresses[frame.path, frame.build_id].append(frame.address)
        known: defaultdict[Identity, list[CodeRange]] = defaultdict(list)
        for range_ in code:
            known[range_.path, range_.build_id].append(range_)
        self._base: dict[Identity, int] = {}
        taken: list[Placed] = []
        for identity in sorted(addresses, key=lambda identity: (identity[0], identity[1] or "")):
            taken += self._place(identity, _disjoint(known[identity]), addresses[identity], taken)
        self.ranges = tuple(sorted(taken, key=lambda placed: placed.start))

    def _place(
        self, identity: Identity, code: list[CodeRange], addresses: list[int], taken: list[Placed]
    ) -> list[Placed]:
        ranges = [(r.start, r.end, r.file_offset) for r in code]
        strays = [a for a in addresses if not any(start <= a <= end for start, end, _ in ranges)]
        base = 0
        if not code or not all(r.fixed for r in code) or _overlap(ranges, taken) or strays:
            base = _FIRST_BASE + len(self._base) * _SPACING
        self._base[identity] = base
        placed = [Placed(*identity, base + start, base + end, offset) for start, end, offset in ranges]
        if strays:
            placed += _around(identity, base, strays, placed)
        return placed

    def address(self, frame: Frame) -> int:
        """Return a frame's address in the layout; that in the process for code in no binary."""
        return frame.address if frame.path is None else self._base[frame.path, frame.build_id] + frame.address

    def range_of(self, frame: Frame) -> Placed | None:
        """Return what holds a frame; None for code in no binary."""
        at = self.address(frame)
        if frame.path is None:
            return None
        # A return address may be the first one after the code.
        return next((r for r in self.ranges if r.path == frame.path and r.start <= at <= r.end), None)


def _disjoint(code: list[CodeRange]) -> list[CodeRange]:
    kept: list[CodeRange] = []
    for range_ in sorted(code, key=lambda r: (r.start, -r.end)):
        if not kept or range_.start >= kept[-1].end:
            kept.append(range_)
    return kept


def _overlap(ranges: list[tuple[int, int, int]], taken: list[Placed]) -> bool:
    return any(start < other.end and other.start < end for start, end, _ in ranges for other in taken)


def _around(identity: Identity, base: int, strays: list[int], placed: list[Placed]) -> list[Placed]:
    """Cover addresses of which no mapping tells, page by page: a wider range could swallow a known one."""
    pages = sorted({base + address // _PAGE * _PAGE for address in strays})
    free = [page for page in pages if not any(page < p.end and p.start < page + _PAGE for p in placed)]
    return [Placed(*identity, page, page + _PAGE, None) for page in free]


def physical(stack: FrameList) -> list[tuple[Frame, ...]]:
    """Split a stack by address: the functions inlined there, innermost first, and the one that they are in."""
    groups: list[tuple[Frame, ...]] = []
    open_: tuple[Frame, ...] = ()
    for frame in stack:
        if open_ and (frame.address, frame.path) != (open_[-1].address, open_[-1].path):
            groups.append(open_)
            open_ = ()
        open_ = (*open_, frame)
        if not frame.inlined:
            groups.append(open_)
            open_ = ()
    return [*groups, open_] if open_ else groups
