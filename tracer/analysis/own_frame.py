"""The frame at which a developer starts to read."""

from __future__ import annotations

from tracer.analysis.runtime import is_distributed, is_interpreter, is_machinery
from tracer.model.findings import FrameList
from tracer.model.frames import Frame


def own_frame(stack: FrameList, makers: int = 0) -> int | None:
    """Return the index of the first frame outside libc, libstdc++, loader, allocators and stubs; None without one.

    Code in no binary and without a name is nobody's that we could tell, so it is passed over. Where there are frames
    of a script, those of its interpreter are passed over too; so are those of the distribution's libraries that the
    program called. `makers`: how many frames at the leaf are the function that makes what the entry is of.
    """
    first = None
    for index, frame in enumerate(stack[makers:], makers):
        if frame.function is None and frame.module is None:
            continue
        if is_machinery(frame) or (is_interpreter(frame) and _has_script(stack)):
            continue
        if not is_distributed(frame):
            return index
        first = index if first is None else first
    return first


class OwnFrames:
    """Finds them in stacks that many entries have in common, looking at each once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[FrameList, int | None]] = {}

    def of(self, stack: FrameList, makers: int = 0) -> int | None:
        """Return what `own_frame` does."""
        key = id(stack), makers
        if key not in self._known:
            self._known[key] = stack, own_frame(stack, makers)
        return self._known[key][1]


def _has_script(stack: FrameList) -> bool:
    return any(frame.kind == "guest" or (frame.language == "JavaScript" and not is_machinery(frame)) for frame in stack)


def call_into_library(stack: FrameList, frame: Frame | None) -> Frame | None:
    """Return the program's call that led to a frame of a library of the distribution; None where the frame is none."""
    own = own_frame(stack) if frame is not None and is_distributed(frame) else None
    return None if own is None or is_distributed(stack[own]) else stack[own]
