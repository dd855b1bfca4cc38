"""Frames of the HTML pages, each one once."""

from __future__ import annotations

from tracer.model.findings import FrameList
from tracer.model.frames import Frame
from tracer.report.stack_lines import name, place


class FrameTable:
    """Each frame once, as [name, place, module, whole path, inlined]."""

    def __init__(self) -> None:
        self.documents: list[list[object]] = []
        self._numbers: dict[Frame, int] = {}

    def of(self, stack: FrameList) -> list[int]:
        """Return the numbers of a stack's frames."""
        return [self._number(frame) for frame in stack]

    def _number(self, frame: Frame) -> int:
        number = self._numbers.get(frame)
        if number is None:
            number = self._numbers[frame] = len(self.documents)
            line = "" if frame.line is None else f":{frame.line}"
            whole = f"{frame.file}{line}" if frame.file else frame.path or ""
            self.documents.append([name(frame), place(frame), frame.module, whole, int(frame.inlined)])
        return number
