"""Folded stacks: one line per call path, for flamegraph.pl and everything that reads its input.

Source of the format: github.com/brendangregg/FlameGraph, flamegraph.pl.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from tracer.model.findings import Findings
from tracer.report.weights import CallPath, call_paths


def write_folded(findings: Findings, stream: TextIO) -> None:
    """Write outstanding bytes by call path; objects where nothing has a size, as in a trace of references only."""
    paths = call_paths(findings)
    if any(path.weight.bytes for path in paths):
        _write(paths, stream, lambda path: path.weight.bytes)
    else:
        write_folded_objects(findings, stream)


def write_folded_objects(findings: Findings, stream: TextIO) -> None:
    """Write outstanding objects, blocks and mappings by call path."""
    _write(call_paths(findings), stream, lambda path: path.weight.count)


def _write(paths: list[CallPath], stream: TextIO, measure: Callable[[CallPath], int]) -> None:
    sums: dict[str, int] = {}
    for path in paths:
        if amount := measure(path):
            line = ";".join(map(_plain, path.names))
            sums[line] = sums.get(line, 0) + amount
    for line, amount in sorted(sums.items()):
        stream.write(f"{line} {amount}\n")


def _plain(name: str) -> str:
    """A semicolon ends a name and a newline the path; a blank is part of C++ names and stays."""
    return "".join(character if character.isprintable() else "?" for character in name.replace(";", ":"))
