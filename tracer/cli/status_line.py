"""The one line on a terminal that shows that a trace goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from tracer.api import Progress
from tracer.cli.step_line import line_room

_EVERY_SECONDS = 0.5


class StatusLine:
    """Writes to a terminal only; `clear` leaves nothing behind."""

    def __init__(self, stream: TextIO, *, enabled: bool) -> None:
        self._stream = stream
        self._enabled = enabled and stream.isatty()
        self._next = 0.0

    def show(self, ask: Callable[[], Progress]) -> None:
        now = time.monotonic()
        if not self._enabled or now < self._next:
            return
        self._next = now + _EVERY_SECONDS
        progress = ask()
        references = f", {progress.events} reference events" if progress.events else ""
        text = f"refleak: {progress.elapsed_ns / 1e9:.0f} s{references}, {progress.lost} lost; Ctrl-C ends the trace"
        self._stream.write(f"\r{text[: line_room(self._stream)]}\x1b[K")
        self._stream.flush()

    def clear(self) -> None:
        if self._enabled and self._next:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
