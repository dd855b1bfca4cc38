"""Writes a recording beside a trace: checkpoints while it runs, the whole at its end."""

from __future__ import annotations

import argparse
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from tracer import __version__
from tracer.capture.assembly import take_snapshot
from tracer.capture.session import Session
from tracer.cli.options import selection_of
from tracer.errors import CannotWrite
from tracer.model.frames import Symbols
from tracer.model.selection import KEEPS_ALL, Selection
from tracer.model.snapshot import Snapshot
from tracer.model.visible import visible
from tracer.recording.recording import Info
from tracer.recording.writer import RecordingWriter

SUFFIX = ".refleak"
_EVERY_SECONDS = 1.0
_MOST_SHARE = 0.02
"""Of the time that a trace takes, for checkpoints: while one is taken, nobody reads the rings."""


def is_recording(path: Path | None) -> bool:
    return path is not None and path.suffix == SUFFIX


class Recorder:
    """A trace goes on where its recording cannot: the first failure is said once, the last one ends in an error."""

    def __init__(self, path: Path, selection: Selection = KEEPS_ALL, *, force: bool, with_symbols: bool) -> None:
        started = datetime.now(UTC).isoformat(timespec="seconds")
        self._path, self._with_symbols = path, with_symbols
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
            print(f"refleak: {visible(str(error))}; the trace goes on", file=sys.stderr)
        now = time.monotonic()
        self._next = now + max(_EVERY_SECONDS, (now - began) / _MOST_SHARE)

    def finish(self, snapshot: Snapshot, symbols: Symbols | None) -> None:
        self._writer.write_snapshot(snapshot, symbols if self._with_symbols else None)

    def next_command(self) -> str:
        return f"refleak report {visible(str(self._path))}"

    def close(self) -> None:
        self._writer.close()

    def discard(self) -> None:
        """Remove the file: there was no trace."""
        self._writer.discard()


def recorder_of(arguments: argparse.Namespace) -> Recorder | None:
    """Open the recording that the user wants, if any. Raises CannotWrite before anything is traced."""
    if not is_recording(arguments.output):
        return None
    selection = selection_of(arguments)
    return Recorder(arguments.output, selection, force=arguments.force, with_symbols=not arguments.no_symbols)
