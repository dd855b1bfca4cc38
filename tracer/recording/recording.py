"""What a recording holds."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from tracer.model.frames import Symbols
from tracer.model.snapshot import Snapshot


@dataclass(frozen=True)
class Info:
    """Who made a recording, of what, and when."""

    version: str = ""
    """Of the refleak that wrote it."""
    command: tuple[str, ...] = ()
    """refleak's own arguments."""
    started: str = ""
    """ISO 8601, UTC."""


@dataclass(frozen=True)
class Recording:
    snapshot: Snapshot
    """As it was written, `open_path` of its binaries aside; what is missing is a loss of it."""
    symbols: Symbols | None
    """None where they were left out, or the trace did not end: to be looked up where the binaries are."""
    info: Info = Info()
    notes: tuple[str, ...] = ()
    """What the reader has to say of the file; also in the snapshot's losses."""


@dataclass(frozen=True)
class Begin:
    """What opens a group: all of a Snapshot that is small, and how much of the rest will follow."""

    facts: Snapshot
    partial: bool = False
    """Taken while the target ran on."""
    stacks: int = 0
    symbols: bool = False
    rows: dict[str, int] = field(default_factory=dict)


_EMPTY = Snapshot("launched", 0)
ARRAYS = {
    f.name: getattr(_EMPTY, f.name).dtype for f in fields(Snapshot) if isinstance(getattr(_EMPTY, f.name), np.ndarray)
}
"""The dtype of each array of a Snapshot."""
BULK = frozenset({*ARRAYS, "stacks"})
"""The fields of a Snapshot that have chunks of their own."""
