"""Copies of probed code, breakpoints included, that a process made for itself: found, and made good.

Tools that patch a function keep a copy of its first instructions, which they run in its place. A breakpoint in it is no
probe's place: the kernel knows nothing of it, and the process would die by SIGTRAP.

A copy is told by the instructions around the breakpoint, as far as they mean the same anywhere: relocated ones differ.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from tracer.architecture.current import ARCHITECTURE
from tracer.binaries.open_binaries import OpenBinary
from tracer.late_dataclasses import dataclass
from tracer.procfs.maps import MapsEntry

BREAKPOINT = 0xCC
_BEFORE, _INSTRUCTIONS = 16, 8
_EVIDENCE = 4
"""Bytes beside the breakpoint that a copy must have in common with the code."""
_LARGEST_MAPPING = 64 << 20
_MOST_BYTES = 256 << 20


@dataclass(frozen=True)
class Excerpt:
    """What stands around a probe's place in its file: `offset` is that of the place in it."""

    code: bytes
    offset: int
    breakpoints: frozenset[int]
    """Offsets of other places within: a breakpoint or the code's own byte may stand there."""

    def is_at(self, data: bytes, start: int) -> bool:
        """Tell whether a copy with a breakpoint at the place begins at `start` of some memory."""
        if start < 0 or start + len(self.code) > len(data):
            return False
        for at, byte in enumerate(self.code):
            found = data[start + at]
            if at == self.offset:
                if found != BREAKPOINT:
                    return False
            elif found != byte and not (found == BREAKPOINT and at in self.breakpoints):
                return False
        return True


def excerpts(binary: OpenBinary, places: Iterable[int]) -> list[Excerpt]:
    """Return one for each place (file offset) of a probe, where enough stands around it that can be told anywhere."""
    every = set(places)
    found = (_excerpt(binary, place, every) for place in every)
    return [excerpt for excerpt in found if excerpt is not None]


def _excerpt(binary: OpenBinary, place: int, places: set[int]) -> Excerpt | None:
    start = _function_start(binary, place)
    code = bytes(binary.image.data[start : place + _BEFORE + 16])
    instructions = ARCHITECTURE.decode(code, start, _BEFORE + _INSTRUCTIONS)
    at = next((n for n, instruction in enumerate(instructions) if instruction.address == place), None)
    if at is None or not ARCHITECTURE.is_same_anywhere(instructions[at]):
        return None
    first = at
    while first and ARCHITECTURE.is_same_anywhere(instructions[first - 1]):
        first -= 1
    begin, end = instructions[first].address, instructions[at].end
    for instruction in instructions[at + 1 :]:
        if end - begin > _EVIDENCE or not ARCHITECTURE.is_same_anywhere(instruction):
            break
        end = instruction.end
    if end - begin <= _EVIDENCE:
        return None
    others = frozenset(other - begin for other in places if begin <= other < end and other != place)
    return Excerpt(code[begin - start : end - start], place - begin, others)


def _function_start(binary: OpenBinary, place: int) -> int:
    """Return the file offset of the function that a place is in, if that is near; else of the place itself."""
    address = binary.image.link_address_of(place)
    symbol = binary.symbols.covering(address) if address is not None else None
    if symbol is None or address is None or address - symbol.address > _BEFORE:
        return place
    return place - (address - symbol.address)



def breakpoints_in_copies(data: bytes, excerpts_: Sequence[Excerpt]) -> dict[int, int]:
    """Return where in some memory breakpoints were copied, with the byte that belongs there."""
    by_next = _by_next_byte(excerpts_)
    found = {}
    for at in _candidates(np.frombuffer(data, np.uint8), sorted(by_next)):
        for excerpt in by_next[data[at + 1]]:
            if excerpt.is_at(data, at - excerpt.offset):
                found[at] = excerpt.code[excerpt.offset]
                break
    return found


def _by_next_byte(excerpts_: Sequence[Excerpt]) -> dict[int, list[Excerpt]]:
    """Order excerpts by what may stand behind the breakpoint; those that end with it by any byte."""
    found: dict[int, list[Excerpt]] = {}
    for excerpt in excerpts_:
        behind = excerpt.offset + 1
        wanted = [excerpt.code[behind]] if behind < len(excerpt.code) else range(256)
        for byte in {*wanted, *([BREAKPOINT] if behind in excerpt.breakpoints else ())}:
            found.setdefault(byte, []).append(excerpt)
    return found


def _candidates(data: npt.NDArray[np.uint8], following: Sequence[int]) -> list[int]:
    found = np.flatnonzero(data[:-1] == BREAKPOINT)
    return [int(at) for at in found[np.isin(data[found + 1], following)]]


def mend_copies(pid: int, entries: Iterable[MapsEntry], find_excerpts: Callable[[], Sequence[Excerpt]]) -> int:
    """Put a process's own bytes where breakpoints were copied to memory that is in no file; return how many.

    `find_excerpts` is asked only where there is such memory: of most libraries that are loaded none is.
    """
    own = [entry for entry in entries if not entry.inode and entry.readable]
    excerpts_ = find_excerpts() if own else ()
    left, mended = _MOST_BYTES, 0
    for entry in own:
        size = entry.end - entry.start
        if not excerpts_ or size > min(left, _LARGEST_MAPPING):
            continue
        left -= size
        with suppress(OSError, ValueError, OverflowError), open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
            data = os.pread(memory.fileno(), size, entry.start)
            for at, byte in breakpoints_in_copies(data, excerpts_).items():
                mended += os.pwrite(memory.fileno(), bytes([byte]), entry.start + at)
    return mended
