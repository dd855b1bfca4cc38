"""Frames of code that is in no file: when each was first seen."""

from __future__ import annotations

from dataclasses import dataclass, field

from tracer.capture.binaries import Binaries
from tracer.model.records import FRAME_BINARY_SHIFT


@dataclass
class SeenFrames:
    """`first`: frame key to the times (after, until) between which it was first met, of the kernel's clock in ns."""

    binaries: Binaries
    first: dict[int, tuple[int, int]] = field(default_factory=dict)
    fresh: list[int] = field(default_factory=list)
    """Those that came since somebody took them."""
    ids: set[int] = field(default_factory=set)

    def note(self, frames: tuple[int, ...], after_ns: int, until_ns: int) -> None:
        if not frames or max(frames) >> FRAME_BINARY_SHIFT < self.binaries.lowest_generated:
            return
        for key in frames:
            if key not in self.first and self.binaries.is_generated(key >> FRAME_BINARY_SHIFT):
                self.first[key] = after_ns, until_ns
                self.fresh.append(key)
                self.ids.add(key >> FRAME_BINARY_SHIFT)
