"""Writes a recording beside a trace: checkpoints while it runs, the whole at its end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from tracer import __version__
from tracer.capture.assembly import take_snapshot
from tracer.capture.session import Session
from tracer.errors import CannotWrite
from tracer.model.frames import Symbols
from tracer.model.selection import KEEPS_ALL, Selection
from tracer.model.snapshot import Snapshot
from tracer.recording.recording import Info
from tracer.recording.writer import RecordingWriter

SUFFIX = ".refleak"
_EVERY_SECONDS = 1.0
_MOST_SHARE = 0.02
"""Of the time that a trace takes, for checkpoints: while one is taken, nobody reads the rings."""


def is_recording(path: Path | None) -> bool:
    return path is not None and path.suffix == SUFFIX


class Recorder:
    """A trace goes on where its recording cannot: `on_failure` hears of the first failure of a checkpoint, and `finish`
    raises what is wrong at the end."""

    def __init__(
        self, path: Path, selection: Selection = KEEPS_ALL, *, force: bool, with_symbols: bool,
        on_failure: Callable[[CannotWrite], None] = lambda _: None,
    ) -> None:  # fmt: skip
        started = datetime.now(UTC).isoformat(timespec="seconds")
        self._with_symbols, self._on_failure = with_symbols, on_failure
        info = Info(__version__, tuple(sys.argv[1:]), started)
        self._writer = RecordingWriter(path, info, selection, force=force)
        self._next = time.monotonic() + _EVERY_SECONDS
        self._failed = False

    def tick(self, session: Session) -> None:
        """Write a checkpoint where it is time for one. Call it often."""
        if self._failed or time.monotonic() < self._next:
            return
        began = time.monotonic()
        try:
            self._writer.checkpoint(take_snapshot(session, running=True), session.drain)
        except CannotWrite as error:
            self._failed = True
            self._on_failure(error)
        now = time.monotonic()
        self._next = now + max(_EVERY_SECONDS, (now - began) / _MOST_SHARE)

    def finish(self, snapshot: Snapshot, symbols: Symbols | None) -> None:
        self._writer.write_snapshot(snapshot, symbols if self._with_symbols else None)

    def close(self) -> None:
        self._writer.close()

    def discard(self) -> None:
        """Remove the file: there was no trace."""
        self._writer.discard()

