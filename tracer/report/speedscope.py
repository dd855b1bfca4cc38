"""A file for speedscope: profiles of outstanding bytes, of outstanding objects, and of errors where there are some.

Source of the format: the file-format-schema.json of the npm package speedscope.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

from tracer import __version__
from tracer.model.findings import Findings, FrameList
from tracer.report.scope import command
from tracer.report.stack_lines import name
from tracer.report.weights import CallPath, call_paths, process_names

_Sample = tuple[list[int], int]
"""Frames by number, outermost first, and what they weigh."""
_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write_speedscope(findings: Findings, stream: TextIO) -> None:
    """Write one JSON document. Paths are "samples", heaviest first; the widths are bytes or objects, not time."""
    stream.write(json.dumps(_document(findings), separators=(",", ":")) + "\n")


def _document(findings: Findings) -> dict[str, object]:
    paths, frames = call_paths(findings), _Frames()
    profiles = [
        _profile("outstanding bytes", "bytes", _weighed(paths, frames, lambda path: path.weight.bytes)),
        _profile("outstanding objects", "none", _weighed(paths, frames, lambda path: path.weight.count)),
        *([_profile("errors", "none", _errors(findings, frames))] if findings.errors else ()),
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
        return self.along(path.names, path.leak.stack)

    def along(self, names: Sequence[str], stack: FrameList) -> list[int]:
        """Return these frames by number: names of a process, of a stack's functions, and of what is below them."""
        below = len(names) - 1 - len(stack) if stack else len(names) - 1
        files = [None, *(frame.file for frame in reversed(stack)), *[None] * below]
        return [self._number(name, file) for name, file in zip(names, files, strict=True)]

    def _number(self, name: str, file: str | None) -> int:
        key = (name, file)
        if key not in self._numbers:
            self._numbers[key] = len(self.documents)
            self.documents.append({"name": name} if file is None else {"name": name, "file": file})
        return self._numbers[key]


def _weighed(paths: list[CallPath], frames: _Frames, measure: Callable[[CallPath], int]) -> list[_Sample]:
    return [(frames.of(path), measure(path)) for path in paths]


def _errors(findings: Findings, frames: _Frames) -> list[_Sample]:
    """Return where rules were broken, with the kind innermost, and how often."""
    programs = process_names(findings)
    return [
        (frames.along([programs.get(error.pid, f"pid {error.pid}"), *map(name, reversed(error.stack)),
                       f"[{error.kind}]"], error.stack), error.count)
        for error in findings.errors
    ]  # fmt: skip


def _profile(title: str, unit: str, samples: Iterable[_Sample]) -> dict[str, object]:
    kept = sorted((sample for sample in samples if sample[1]), key=lambda sample: -sample[1])
    return {
        "type": "sampled",
        "name": title,
        "unit": unit,
        "startValue": 0,
        "endValue": sum(value for _, value in kept),
        "samples": [sample for sample, _ in kept],
        "weights": [value for _, value in kept],
    }
