"""The call frame instructions of a binary, by address."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tracer.cfi.call_frames import Fde, FrameSource, ProgramReader, read_programs
from tracer.cfi.evaluator import RegisterRow, row_at
from tracer.cfi.frame_source import frame_sources, search_table
from tracer.elf.image import Image

_MOST_ROWS = 1 << 14


class FrameIndex:
    """Finds the function that describes an address; .debug_frame where .eh_frame has none."""

    def __init__(self, image: Image) -> None:
        sources = frame_sources(image)
        self._parts: list[Callable[[int], Fde | None]] = []
        if sources and not sources[0].debug and (table := search_table(image)) is not None:
            self._parts.append(_by_table(sources[0], *table))
        self._parts += map(_by_all, sources)
        self._rows: dict[int, RegisterRow | None] = {}

    def find(self, link_address: int) -> Fde | None:
        """Return the function around an address; None where none is described."""
        found = (part(link_address) for part in self._parts)
        return next((fde for fde in found if fde is not None), None)

    def row_at(self, function: Fde, link_address: int) -> RegisterRow | None:
        """Return the row that holds at an address of a function that was found here: worked out once for each, since
        processes with the same libraries wait in the same places."""
        if link_address not in self._rows:
            if len(self._rows) >= _MOST_ROWS:
                self._rows.clear()
            self._rows[link_address] = row_at(function, link_address)
        return self._rows[link_address]


def _by_table(
    source: FrameSource, starts: NDArray[np.int64], records: NDArray[np.int64]
) -> Callable[[int], Fde | None]:
    """Look functions up in the linker's table, and read the record of those that are asked for: a compiler has 50,000,
    of which a stack meets some twenty."""
    reader = ProgramReader(source)

    @cache
    def record(at: int) -> Fde | None:
        return reader.at(int(records[at]))

    def find(link_address: int) -> Fde | None:
        at = int(np.searchsorted(starts, link_address, side="right")) - 1
        found = record(at) if at >= 0 else None
        return found if found is not None and found.start <= link_address < found.end else None

    return find


def _by_all(source: FrameSource) -> Callable[[int], Fde | None]:
    """Read all records, once a function is asked for that a table does not have: who changes a binary later may leave
    the linker's table as it was."""

    @cache
    def read() -> tuple[list[int], list[Fde]]:
        programs = sorted(read_programs(source), key=lambda program: program.start)
        return [program.start for program in programs], programs

    def find(link_address: int) -> Fde | None:
        starts, programs = read()
        at = bisect_right(starts, link_address) - 1
        return programs[at] if at >= 0 and link_address < programs[at].end else None

    return find
