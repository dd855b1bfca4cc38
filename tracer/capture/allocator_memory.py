"""The memory of allocators that take the place of libc's: what of it is in no block is free, or their books."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tracer.binaries.open_binaries import OpenBinary
from tracer.model.distinct_values import is_in
from tracer.model.records import FRAME_BINARY_SHIFT, MappedFlag
from tracer.model.snapshot import Records, Stack
from tracer.probing.replacements import moves_break, whole_replacements
from tracer.scanning.outstanding import Heaps


def of_program(mapped: Records) -> Records:
    """Return those MAPPED_RECORDs that calls of the heap did not make: allocations tell of that memory."""
    chosen: Records = mapped[mapped["flags"] & np.uint32(MappedFlag.BY_HEAP) == 0]
    return chosen


def heaps_of(mapped: Records, stacks: Mapping[int, Stack], binaries: Sequence[OpenBinary]) -> Heaps | None:
    """Return what such allocators have, of MAPPED_RECORDs; None where there is none, or not all blocks are known."""
    allocators = whole_replacements(binaries)
    if not allocators:
        return None
    callers = set(_called_from(allocators, stacks))
    chosen = mapped[is_in(mapped["stack"], np.array(sorted(callers), np.uint64))]
    return Heaps(chosen, has_break=not moves_break(binaries))


def _called_from(allocators: set[int], stacks: Mapping[int, Stack]) -> Iterable[int]:
    """Yield the stacks whose innermost frame, which called mmap, is in one of these binaries."""
    for number, stack in stacks.items():
        if stack.frames and stack.frames[0] >> FRAME_BINARY_SHIFT in allocators:
            yield number
