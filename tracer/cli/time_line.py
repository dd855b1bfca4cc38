"""Time line of a trace's own work: what was done until when, and the processor time that it took."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

_STARTED = 19
"""Field of /proc/PID/stat behind the name: when the process started, in clock ticks since the machine did (proc(5))."""
_HEAD = ("until", "took", "processor", "")


def _started() -> float:
    """Return when this process started, in seconds of CLOCK_BOOTTIME; a tick is 10 ms."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return int(fields[_STARTED]) / os.sysconf("SC_CLK_TCK")


class TimeLine:
    """`mark` says what has just been done; `write` prints one line for each. Times are in seconds."""

    def __init__(
        self, *, enabled: bool, started: float | None = None,
        wall: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
        processor: Callable[[], float] = time.process_time,
    ) -> None:  # fmt: skip
        self._wall, self._processor = wall, processor
        self._started = (_started() if started is None else started) if enabled else None
        """None where no marks are wanted."""
        self._marks: list[tuple[str, float, float]] = []

    def mark(self, done: str) -> None:
        """Note that something is done; processor time is that of all of this process's threads."""
        if self._started is not None:
            self._marks.append((done, self._wall() - self._started, self._processor()))

    def write(self, stream: TextIO) -> None:
        """Print the marks, if they are wanted."""
        if not self._marks:
            return
        lines = ["{:>9} {:>9} {:>9} {}".format(*_HEAD).rstrip()]
        before_wall = before_processor = 0.0
        for done, wall, processor in self._marks:
            took, used = wall - before_wall, processor - before_processor
            lines.append(f"{wall:7.3f} s {took:7.3f} s {used:7.3f} s {done}")
            before_wall, before_processor = wall, processor
        lines.append(f"{before_wall:7.3f} s {'':9} {before_processor:7.3f} s in all")
        print("refleak: where its time went", *lines, sep="\n", file=stream)
