"""Says that a checkpoint was taken."""

from __future__ import annotations

from typing import TextIO

from tracer.api import Trace


class CheckpointNotice:
    def __init__(self, stream: TextIO, *, enabled: bool) -> None:
        self._stream, self._enabled, self._said = stream, enabled, 0

    def tick(self, trace: Trace) -> None:
        """Write a line for each checkpoint that is new since the last call."""
        for checkpoint in trace.checkpoints[self._said :]:
            if self._enabled:
                said = f"refleak: checkpoint {checkpoint.number} at {checkpoint.time_ns / 1e9:.1f} s"
                self._stream.write(f"\r{said}\x1b[K\n" if self._stream.isatty() else f"{said}\n")
                self._stream.flush()
            self._said += 1
