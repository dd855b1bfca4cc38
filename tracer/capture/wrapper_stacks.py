"""The mappings that the C library makes on behalf of a wrapper of --preload: a call of the heap counts once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tracer.binaries.open_binaries import OpenBinary
from tracer.model.distinct_values import is_in
from tracer.model.preload_names import SONAME
from tracer.model.records import FRAME_BINARY_SHIFT
from tracer.model.snapshot import Records, Stack


def outside_wrappers(rows: Records, stacks: Mapping[int, Stack], binaries: Iterable[OpenBinary]) -> Records:
    """Return the rows, with a column of stacks, whose stacks do not go through the library."""
    ours = {binary.id for binary in binaries if binary.image.soname == SONAME}
    if not ours:
        return rows
    inside = [number for number, stack in stacks.items()
              if any(frame >> FRAME_BINARY_SHIFT in ours for frame in stack.frames)]  # fmt: skip
    kept: Records = rows[~is_in(rows["stack"], np.array(inside, np.uint64))]
    return kept
