"""The frame at which a developer starts to read."""

from __future__ import annotations

from tracer.analysis.runtime import is_machinery
from tracer.model.findings import FrameList


def own_frame(stack: FrameList) -> int | None:
    """Return the index of the first frame outside libc, libstdc++, loader, allocators and stubs; None without one.

    Code in no binary and without a name is nobody's that we could tell, so it is passed over.
    """
    for index, frame in enumerate(stack):
        if (frame.function is not None or frame.module is not None) and not is_machinery(frame):
            return index
    return None
