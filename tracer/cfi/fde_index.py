"""The call frame instructions of a binary, by address."""

from __future__ import annotations

from bisect import bisect_right

from tracer.cfi.call_frames import Fde, read_programs
from tracer.cfi.evaluator import RegisterRow, row_at
from tracer.cfi.frame_source import frame_sources
from tracer.elf.image import Image

_MOST_ROWS = 1 << 14


class FrameIndex:
    """Finds the function that describes an address; .debug_frame where .eh_frame has none."""

    def __init__(self, image: Image) -> None:
        self._parts: list[tuple[list[int], list[Fde]]] = []
        for source in frame_sources(image):
            programs = sorted(read_programs(source), key=lambda program: program.start)
            self._parts.append(([program.start for program in programs], programs))
        self._rows: dict[int, RegisterRow | None] = {}

    def find(self, link_address: int) -> Fde | None:
        for starts, programs in self._parts:
            at = bisect_right(starts, link_address) - 1
            if at >= 0 and link_address < programs[at].end:
                return programs[at]
        return None

    def row_at(self, function: Fde, link_address: int) -> RegisterRow | None:
        """Return the row that holds at an address of a function that was found here: worked out once for each, since
        processes with the same libraries wait in the same places."""
        if link_address not in self._rows:
            if len(self._rows) >= _MOST_ROWS:
                self._rows.clear()
            self._rows[link_address] = row_at(function, link_address)
        return self._rows[link_address]
