"""From a Snapshot to a report on paper: symbolize, analyse, write."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TextIO

from tracer.analysis.analysis import analyse
from tracer.analysis.options import AnalysisOptions
from tracer.analysis.suppression import Suppression, parse_suppressions
from tracer.analysis.verdict import has_findings
from tracer.errors import CannotRead, CannotWrite
from tracer.model.findings import Findings
from tracer.model.frames import Symbols
from tracer.model.snapshot import Snapshot
from tracer.report.json_report import write_json
from tracer.report.text import TextOptions, write_text
from tracer.symbols.options import SymbolOptions
from tracer.symbols.symbolizer import symbolize


def symbolized(snapshot: Snapshot, arguments: argparse.Namespace) -> Symbols:
    """Name every frame of the stacks that a report may show."""
    frames = set(chain.from_iterable(stack.frames for stack in snapshot.stacks.values()))
    options = SymbolOptions(demangle=not arguments.no_demangle, debug_directories=tuple(arguments.debug_dir))
    return symbolize(frames, snapshot.binaries, options)


def _suppressions(paths: Iterable[Path]) -> AnalysisOptions:
    found: list[Suppression] = []
    for path in paths:
        try:
            found += parse_suppressions(path.read_text(), str(path))
        except OSError as error:
            raise CannotRead(f"cannot read {path}: {error.strerror}", "check the path after --suppressions") from None
    return AnalysisOptions(suppressions=tuple(found))


def write_report(snapshot: Snapshot, arguments: argparse.Namespace) -> Findings:
    """Analyse, write the report where the user wants it, and return what was found."""
    options = _suppressions(arguments.suppressions)
    if arguments.no_default_suppressions:
        options = AnalysisOptions(options.suppressions, default_suppressions=False)
    findings = analyse(snapshot, symbolized(snapshot, arguments), options)
    with _stream(arguments.output) as stream:
        _writer(arguments, stream)(findings, stream)
    return findings


def _writer(arguments: argparse.Namespace, stream: TextIO) -> Callable[[Findings, TextIO], None]:
    if _format(arguments) == "json":
        return write_json
    text = TextOptions(top=arguments.top)
    return lambda findings, out: write_text(findings, out, text)


def _format(arguments: argparse.Namespace) -> str:
    if arguments.format is not None:
        return str(arguments.format)
    return "json" if arguments.output is not None and arguments.output.suffix == ".json" else "text"


def check_output(arguments: argparse.Namespace) -> None:
    """Raise CannotWrite, and read the suppressions, before anything is traced."""
    _suppressions(arguments.suppressions)
    path = arguments.output
    if path is None:
        return
    place = path if path.exists() else path.parent
    if path.is_dir() or not place.exists() or not os.access(place, os.W_OK):
        raise CannotWrite(f"cannot write {path}")


@contextmanager
def _stream(path: Path | None) -> Iterator[TextIO]:
    """Give the stream to report to. The report goes to stderr where there is no file: stdout is the target's."""
    if path is None:
        yield sys.stderr
        sys.stderr.flush()
        return
    try:
        with open(path, "w", encoding="utf-8") as stream:
            yield stream
    except OSError as error:
        raise CannotWrite(f"cannot write {path}: {error.strerror}") from None


def is_failure(findings: Findings) -> bool:
    return has_findings(findings)
