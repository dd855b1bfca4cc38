"""Generated ranges, where code stands that was made at run time: without a file, by address space."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from tracer.model.addresses import Range, Space
from tracer.model.snapshot import Mapping
from tracer.procfs.maps import MapsEntry
from tracer.spaces.mapping_tables import Unwound

_PAGE_SHIFT = 12
Placed = tuple[Mapping, Unwound, int]
"""A mapping with its binary and its bias: address minus link address."""


class GeneratedRanges:
    """Each image under the key that its JIT knows it by. Ranges never overlap: the newest one is right."""

    def __init__(self) -> None:
        self._images: dict[Space, dict[int, list[Placed]]] = {}
        self._by_page: dict[Space, dict[int, set[int]]] = {}
        self.unlisted: set[int] = set()
        """Ids of those for which there was no room in a table of mappings."""

    def add(
        self, space: Space, key: int, binary: Unwound, ranges: Sequence[Range], bias: int, files: Sequence[Placed]
    ) -> bool:
        """Add an image; False where code of one of the `files` is already there."""
        if any(start < file.end and file.start < end for start, end in ranges for file, _, _ in files):
            return False
        self.remove(space, key)
        for start, end in ranges:  # of an image that is there still, the JIT has used the memory again without a word
            for other in self.overlapping(space, start, end):
                self.remove(space, other)
        self._images.setdefault(space, {})[key] = [
            (Mapping(*space, start, end, 0, binary.id, True, 0, link_address=start - bias), binary, bias)
            for start, end in ranges
        ]
        by_page = self._by_page.setdefault(space, {})
        for start, end in ranges:
            for page in _pages(start, end):
                by_page.setdefault(page, set()).add(key)
        return True

    def overlapping(self, space: Space, start: int, end: int) -> set[int]:
        """Return the keys of images with code in a range."""
        images, by_page = self._images.get(space, {}), self._by_page.get(space, {})
        near = {key for page in _pages(start, end) for key in by_page.get(page, ())}
        return {key for key in near if any(m.start < end and start < m.end for m, _, _ in images[key])}

    def remove(self, space: Space, key: int) -> bool:
        placed = self._images.get(space, {}).pop(key, None)
        if placed is None:
            return False
        by_page = self._by_page[space]
        for mapping, _, _ in placed:
            for page in _pages(mapping.start, mapping.end):
                by_page[page].discard(key)
                if not by_page[page]:
                    del by_page[page]
        return True

    def drop_unmapped(self, space: Space, entries: Sequence[MapsEntry]) -> None:
        """Forget images whose memory is gone. `entries` are the process's, in order of address."""
        if not self._images.get(space):
            return
        starts, ends = _pieces(entries)

        def is_mapped(mapping: Mapping) -> bool:
            at = bisect_right(starts, mapping.start) - 1
            return at >= 0 and ends[at] >= mapping.end

        for key, placed in list(self._images[space].items()):
            if not all(is_mapped(mapping) for mapping, _, _ in placed):
                self.remove(space, key)

    def listed(self, space: Space, room: int) -> Iterator[Placed]:
        """Yield at most `room` ranges, those of the newest images; the others are noted as unlisted."""
        for placed in reversed(self._images.get(space, {}).values()):
            room -= len(placed)
            if room >= 0:
                yield from placed
            else:
                self.unlisted.add(placed[0][1].id)

    def forked(self, parent: Space, child: Space) -> None:
        self._images[child] = dict(self._images.get(parent, {}))
        self._by_page[child] = {page: set(keys) for page, keys in self._by_page.get(parent, {}).items()}

    def ended(self, space: Space) -> None:
        self._images.pop(space, None)
        self._by_page.pop(space, None)


def _pages(start: int, end: int) -> range:
    return range(start >> _PAGE_SHIFT, (end - 1 >> _PAGE_SHIFT) + 1)


def _pieces(entries: Sequence[MapsEntry]) -> tuple[list[int], list[int]]:
    """Return starts and ends of memory without a gap."""
    starts: list[int] = []
    ends: list[int] = []
    for entry in entries:
        if ends and ends[-1] == entry.start:
            ends[-1] = entry.end
        else:
            starts.append(entry.start)
            ends.append(entry.end)
    return starts, ends
