"""From a Snapshot to a report on paper: symbolize, analyse, write."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path

from tracer.analysis.analysis import analyse
from tracer.analysis.options import AnalysisOptions
from tracer.analysis.suppression import Suppression, parse_suppressions
from tracer.analysis.verdict import has_findings
from tracer.cli.report_file import report_file
from tracer.errors import CannotRead, CannotWrite
from tracer.model.findings import Findings
from tracer.model.frames import Symbols
from tracer.model.snapshot import Snapshot
from tracer.report.formats import Format, ReportOptions, format_for, write_to_file
from tracer.report.text import TextOptions
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
    chosen = format_for(arguments.format, arguments.output)
    options = replace(options, freed_stacks=chosen.needs_freed)
    findings = analyse(snapshot, symbolized(snapshot, arguments), options)
    _write(findings, chosen, arguments)
    return findings


def _write(findings: Findings, chosen: Format, arguments: argparse.Namespace) -> None:
    """Write to the user's file, or else to stderr: stdout is the target's."""
    root = arguments.source_root.resolve() if arguments.source_root is not None else None
    options = ReportOptions(TextOptions(top=arguments.top), str(root) if root is not None else None)
    if arguments.output is not None:
        with report_file(arguments.output) as file:
            write_to_file(chosen, findings, file, options)
    elif chosen.write is not None:
        chosen.write(findings, sys.stderr, options)
        sys.stderr.flush()


def check_output(arguments: argparse.Namespace) -> None:
    """Raise CannotWrite, and read the suppressions, before anything is traced."""
    _suppressions(arguments.suppressions)
    format_for(arguments.format, arguments.output)
    path = arguments.output
    if path is None:
        return
    place = path if path.exists() else path.parent
    if path.is_dir() or not place.exists() or not os.access(place, os.W_OK):
        raise CannotWrite(f"cannot write {path}")


def is_failure(findings: Findings) -> bool:
    return has_findings(findings)
