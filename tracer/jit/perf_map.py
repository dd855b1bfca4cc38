"""perf's map files, /tmp/perf-PID.map: lines of START SIZE NAME, numbers in hex without 0x.

Linux, tools/perf/Documentation/jit-interface.txt. Anybody can write anything into one.
"""

from __future__ import annotations

import re

from tracer.late_dataclasses import dataclass
from tracer.late_patterns import late_pattern

_LINE = late_pattern(rb"(?:0[xX])?([0-9a-fA-F]{1,16})[ \t]+(?:0[xX])?([0-9a-fA-F]{1,16})[ \t]+(\S.*)", re.DOTALL)
_END_OF_USER_SPACE = 1 << 47
_LARGEST_FUNCTION = 1 << 28
_LONGEST_LINE = 1 << 16


@dataclass(frozen=True)
class PerfMapLine:
    start: int
    size: int
    name: str


def parse_line(line: bytes) -> PerfMapLine | None:
    """Return what a line without its end says; None where it is malformed."""
    match = _LINE.fullmatch(line.rstrip(b"\r"))
    if match is None:
        return None
    start, size = int(match[1], 16), int(match[2], 16)
    if not 0 < size <= _LARGEST_FUNCTION or start + size > _END_OF_USER_SPACE:
        return None
    return PerfMapLine(start, size, match[3].decode("utf-8", "replace").rstrip())


class PerfMapReader:
    """Reads a map as it grows; `malformed` counts the lines that say nothing."""

    def __init__(self) -> None:
        self.malformed = 0
        self._rest = b""
        self._too_long = False

    def feed(self, data: bytes) -> list[PerfMapLine]:
        """Return the lines that `data` completes."""
        *lines, rest = (self._rest + data).split(b"\n")
        if self._too_long and lines:
            lines, self._too_long = lines[1:], False
        if len(rest) > _LONGEST_LINE:
            self.malformed += not self._too_long
            rest, self._too_long = b"", True
        self._rest = rest
        found = []
        for line in lines:
            parsed = parse_line(line) if line else None
            if parsed is not None:
                found.append(parsed)
            elif line:
                self.malformed += 1
        return found
