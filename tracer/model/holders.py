"""Holders: who points at what is outstanding, summed up by what holds it."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from tracer.late_dataclasses import dataclass


class HolderKind(IntEnum):
    """What a word is in that points at a block. `place` of a HOLDER_RECORD means another thing in each."""

    NOBODY = 0
    """Nothing points at the target: that it was looked for."""
    GLOBAL = 1
    """Data of a binary: its id << 48 | link address; 0 for the many that were summed up."""
    THREAD_LOCAL = 2
    """Of a thread: its id << 48 | link address in the program's segment of it, where it is in that; else 0."""
    STACK = 3
    """Of a thread: the id of its stack from the word's frame on, 0 where it could not be walked. `offset` is from the
    canonical frame address, below which the frame is."""
    REGISTER = 4
    """Of a thread."""
    BLOCK = 5
    """Another block: the stack of its birth."""
    MAPPING = 6
    """Memory that the program mapped: the stack of that call; 0 for memory of unknown making."""
    FREED_BLOCK = 7
    """A block that was freed: the stack of its birth, with `released`; that word holds nothing any more."""


KIND_GONE = 3
"""Beside KIND_REFERENCE and so on: a counted object whose memory was freed; `target` is that of its error."""
SEVERAL = -1
"""An `offset`: at several, or at none that says anything."""

HOLDER_RECORD = np.dtype(
    [
        ("target", "<u8"), ("place", "<u8"), ("offset", "<i8"), ("size", "<u8"), ("target_size", "<u8"),
        ("type", "<u8"), ("table", "<u8"), ("released", "<u8"), ("count", "<u8"),
        ("pid", "<u4"), ("tid", "<u4"), ("name", "<u4"), ("generation", "<u2"), ("target_kind", "u1"), ("kind", "u1"),
        ("interior", "u1"),
    ],
    align=True,
)  # fmt: skip
"""Words of one kind that point at what one `target` stands for.

`target`, `target_kind`: of blocks and mappings the address of the first of those of one birth, class and owner, for all
of which it stands; of counted objects that of one's counter. `size`: of the block that holds, 0 where several differ;
`target_size` of those that are held. `type`: of the counted object that the holder is. `table`: of the C++ object that
it is, where its table of virtual functions lies (binary << 48 | link address). `count`: words. `interior`: they point
into the middle. `name`: 1 + its place in Snapshot.holder_names, 0 for none."""


@dataclass(frozen=True, slots=True)
class HolderName:
    """What the files of the target say of a holder.

    `name`: a variable with the way to the member, `machines.host.kmaps`; for a block `struct machine.kmaps`.
    """

    name: str
    type: str | None = None
    """Of a block: its struct or class."""
    member: str | None = None
    """Of that type, where the pointer is."""
    module: str | None = None
