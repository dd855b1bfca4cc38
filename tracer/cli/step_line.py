"""The one line on a terminal that says what takes its time before and after a trace."""

from __future__ import annotations

from typing import TextIO

from tracer.report.page import PIPED_WIDTH, stream_width


def line_room(stream: TextIO) -> int:
    """Return how much of a line a terminal shows in one row: what goes on in the next one would not be cleared."""
    return min(PIPED_WIDTH, stream_width(stream)) - 1


class StepLine:
    """Writes to a terminal only; `clear` leaves nothing behind."""

    def __init__(self, stream: TextIO, *, enabled: bool = True) -> None:
        self._stream = stream
        self._enabled = enabled and stream.isatty()
        self._shown = False

    def show(self, step: str) -> None:
        """Say what begins; an empty step clears the line."""
        if not step:
            self.clear()
        elif self._enabled:
            self._stream.write(f"\r{f'refleak: {step} ...'[: line_room(self._stream)]}\x1b[K")
            self._stream.flush()
            self._shown = True

    def clear(self) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False
