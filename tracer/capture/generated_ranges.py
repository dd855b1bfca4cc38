"""Where code stands that was made at run time: ranges without a file, by address space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracer.capture.binaries import OpenBinary
from tracer.model.snapshot import Mapping
from tracer.procfs.maps import MapsEntry

Space = tuple[int, int]
Range = tuple[int, int]
Placed = tuple[Mapping, OpenBinary, int]
"""A mapping with its binary and its bias: address minus link address."""


class GeneratedRanges:
    """Each image under the key that its JIT knows it by. Ranges never overlap: the newest one is right."""

    def __init__(self) -> None:
        self._images: dict[Space, dict[int, list[Placed]]] = {}
        self.unlisted: set[int] = set()
        """Ids of those for which there was no room in a table of mappings."""

    def add(
        self, space: Space, key: int, binary: OpenBinary, ranges: Sequence[Range], bias: int, files: Sequence[Placed]
    ) -> bool:
        """Add an image; False where code of one of the `files` is already there."""
        placed = [
            (Mapping(*space, start, end, 0, binary.id, True, 0, link_address=start - bias), binary, bias)
            for start, end in ranges
        ]
        if any(_overlap(item[0], file[0]) for item in placed for file in files):
            return False
        images = self._images.setdefault(space, {})
        images.pop(key, None)
        for other in [k for k, old in images.items() if any(_overlap(a[0], b[0]) for a in old for b in placed)]:
            del images[other]  # the JIT has used its memory again without a word
        images[key] = placed
        return True

    def remove(self, space: Space, key: int) -> bool:
        return self._images.get(space, {}).pop(key, None) is not None

    def drop_unmapped(self, space: Space, entries: Sequence[MapsEntry]) -> None:
        """Forget images whose memory is gone. `entries` are the process's, in order of address."""
        images = self._images.get(space, {})
        for key in [key for key, placed in images.items() if not all(_is_mapped(item[0], entries) for item in placed)]:
            del images[key]

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

    def ended(self, space: Space) -> None:
        self._images.pop(space, None)


def _overlap(a: Mapping, b: Mapping) -> bool:
    return a.start < b.end and b.start < a.end


def _is_mapped(mapping: Mapping, entries: Sequence[MapsEntry]) -> bool:
    at = mapping.start
    for entry in entries:
        if entry.start <= at < entry.end:
            at = entry.end
    return at >= mapping.end
