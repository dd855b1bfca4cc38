"""Frames of code that is in no file: when each was first seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from tracer.binaries.open_binaries import Binaries
from tracer.late_dataclasses import dataclass
from tracer.model.generated import GeneratedFrame
from tracer.model.records import FRAME_ADDRESS_MASK, FRAME_BINARY_SHIFT, FRAME_EXACT
from tracer.model.snapshot import ANONYMOUS, Binary

_PAGE_SHIFT = 12


@dataclass
class SeenFrames:
    """`first`: frame key to the times (after, until) between which it was first met, of the kernel's clock in ns."""

    binaries: Binaries
    first: dict[int, tuple[int, int]] = field(default_factory=dict)
    fresh: list[int] = field(default_factory=list)
    """Those that came since somebody took them."""
    ids: set[int] = field(default_factory=set)
    _by_page: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    def note(self, frames: tuple[int, ...], after_ns: int, until_ns: int) -> None:
        if not frames or max(frames) >> FRAME_BINARY_SHIFT < self.binaries.lowest_generated:
            return
        for key in frames:
            if key not in self.first and self.binaries.is_generated(key >> FRAME_BINARY_SHIFT):
                self.first[key] = after_ns, until_ns
                self.fresh.append(key)
                self.ids.add(key >> FRAME_BINARY_SHIFT)
                self._by_page.setdefault(_page(key), []).append(key)

    def between(self, id_: int, start: int, end: int) -> Iterator[int]:
        """Yield the keys with an id whose addresses are in a range; return addresses at its end too."""
        for page in range(start >> _PAGE_SHIFT, (end >> _PAGE_SHIFT) + 1):
            for key in self._by_page.get((id_, page), ()):
                if start <= key & FRAME_ADDRESS_MASK <= end:
                    yield key

    def images(self) -> Iterator[Binary]:
        """Yield the images of JITs that they are in, or what stands for code in none."""
        for id_ in sorted(self.ids):
            image = self.binaries.generated.get(id_)
            yield image.record if image is not None else Binary(id_, "", kind=ANONYMOUS)

    def symbols(self) -> dict[int, GeneratedFrame]:
        """Return the frames that a symbol of their image covers: images are here, for who reads a recording without."""
        images, found = self.binaries.generated, {}
        symbols = {id_: images[id_].symbols for id_ in self.ids & images.keys()}
        for key in self.first:
            table, address = symbols.get(key >> FRAME_BINARY_SHIFT), key & FRAME_ADDRESS_MASK
            symbol = table.covering(address if key & FRAME_EXACT else address - 1) if table is not None else None
            if symbol is not None:
                found[key] = GeneratedFrame(symbol.name, offset=address - symbol.address)
        return found


def _page(key: int) -> tuple[int, int]:
    return key >> FRAME_BINARY_SHIFT, (key & FRAME_ADDRESS_MASK) >> _PAGE_SHIFT
