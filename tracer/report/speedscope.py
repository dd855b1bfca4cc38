"""A file for speedscope: two profiles, of outstanding bytes and of outstanding objects.

Source of the format: the file-format-schema.json of the npm package speedscope.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TextIO

from tracer import __version__
from tracer.model.findings import Findings
from tracer.report.scope import command
from tracer.report.weights import CallPath, call_paths

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write_speedscope(findings: Findings, stream: TextIO) -> None:
    """Write one JSON document. Paths are "samples", heaviest first; the widths are bytes or objects, not time."""
    stream.write(json.dumps(_document(findings), separators=(",", ":")) + "\n")


def _document(findings: Findings) -> dict[str, object]:
    paths, frames = call_paths(findings), _Frames()
    profiles = [
        _profile("outstanding bytes", "bytes", paths, frames, lambda path: path.weight.bytes),
        _profile("outstanding objects", "none", paths, frames, lambda path: path.weight.count),
    ]
    return {
        "$schema": _SCHEMA,
        "exporter": f"refleak {__version__}",
        "name": command(findings.processes[0]) if findings.processes else "refleak",
        "activeProfileIndex": 0 if any(path.weight.bytes for path in paths) else 1,
        "shared": {"frames": frames.documents},
        "profiles": profiles,
    }


class _Frames:
    """One for each function, without lines: the left-heavy view sums by frame."""

    def __init__(self) -> None:
        self.documents: list[dict[str, object]] = []
        self._numbers: dict[tuple[str, str | None], int] = {}

    def of(self, path: CallPath) -> list[int]:
        """Return a path's frames by number, outermost first."""
        stack = list(reversed(path.leak.stack))
        below = len(path.names) - 1 - len(stack) if stack else len(path.names) - 1
        files = [None, *(frame.file for frame in stack), *[None] * below]
        return [self._number(name, file) for name, file in zip(path.names, files, strict=True)]

    def _number(self, name: str, file: str | None) -> int:
        key = (name, file)
        if key not in self._numbers:
            self._numbers[key] = len(self.documents)
            self.documents.append({"name": name} if file is None else {"name": name, "file": file})
        return self._numbers[key]


def _profile(
    name: str, unit: str, paths: list[CallPath], frames: _Frames, measure: Callable[[CallPath], int]
) -> dict[str, object]:
    kept = sorted((path for path in paths if measure(path)), key=lambda path: -measure(path))
    return {
        "type": "sampled",
        "name": name,
        "unit": unit,
        "startValue": 0,
        "endValue": sum(map(measure, kept)),
        "samples": [frames.of(path) for path in kept],
        "weights": [measure(path) for path in kept],
    }
