"""From a Snapshot to a report on paper: symbolize, analyse, hold against the baseline, write."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TextIO

from tracer.analysis.analysis import analyse
from tracer.analysis.baseline import against_baseline
from tracer.analysis.options import AnalysisOptions
from tracer.analysis.policy import ANY_FINDING
from tracer.analysis.suppression import Rule, parse_suppressions
from tracer.cli.findings_file import read_findings
from tracer.cli.recorder import is_recording
from tracer.cli.report_file import report_file
from tracer.errors import CannotRead, CannotWrite, UsageError
from tracer.files.plain_file import open_plain, read_named
from tracer.model.findings import Findings
from tracer.model.frames import Symbols
from tracer.model.records import FRAME_BINARY_SHIFT, GUEST_BINARY
from tracer.model.snapshot import Snapshot
from tracer.model.visible import visible
from tracer.recording.output_place import check_writable
from tracer.report.formats import Format, ReportOptions, format_for, write_to_file
from tracer.report.suppression_text import write_suppressions
from tracer.report.text import TextOptions
from tracer.symbols.class_names import class_names
from tracer.symbols.options import SymbolOptions
from tracer.symbols.symbolizer import symbolize

_NONE: Symbols = {}
_LARGEST_SUPPRESSIONS = 1 << 24
_FAILED = 1
"""Exit status where --fail-on says so and --error-exitcode does not say which."""


def symbolized(snapshot: Snapshot, arguments: argparse.Namespace, known: Symbols = _NONE) -> Symbols:
    """Name every frame of the stacks that a report may show, but for those that are known."""
    first_guest = GUEST_BINARY << FRAME_BINARY_SHIFT
    guests = {first_guest | index: (frame,) for index, frame in enumerate(snapshot.guests)}
    stacks = snapshot.stacks.values()
    frames = set(chain.from_iterable(stack.frames for stack in stacks)) - guests.keys() - known.keys()
    options = SymbolOptions(demangle=not arguments.no_demangle, debug_directories=tuple(arguments.debug_dir))
    generated, callers = snapshot.generated, snapshot.heap_callers
    return symbolize(frames, snapshot.binaries, options, generated=generated, callers=callers) | guests


def with_class_names(snapshot: Snapshot, arguments: argparse.Namespace) -> Snapshot:
    """Return the snapshot with types called as the programmer calls their classes, unless that is not wanted."""
    return snapshot if arguments.no_demangle else replace(snapshot, types=class_names(snapshot.types))


def analysis_options(arguments: argparse.Namespace) -> AnalysisOptions:
    """Read the suppressions. Raises CannotRead and SpecInvalid."""
    return AnalysisOptions(
        tuple(_suppressions(arguments.suppressions)), default_suppressions=not arguments.no_default_suppressions,
        older_ns=getattr(arguments, "older_ns", 0),
    )


def _suppressions(paths: Iterable[Path]) -> Iterator[Rule]:
    for path in paths:
        try:
            yield from parse_suppressions(read_named(path, _LARGEST_SUPPRESSIONS).decode(), str(path))
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not a text"
            raise CannotRead(f"cannot read {path}: {reason}", "check the path after --suppressions") from None


def judge(snapshot: Snapshot, symbols: Symbols, arguments: argparse.Namespace) -> Findings:
    """Analyse, and leave out what the baseline has."""
    options = replace(analysis_options(arguments), freed_stacks=_chosen(arguments).needs_freed)
    findings = analyse(with_class_names(snapshot, arguments), symbols, options)
    if arguments.baseline is None:
        return findings
    baseline = read_findings(arguments.baseline, arguments, analysis_options(arguments))
    return against_baseline(findings, baseline, str(arguments.baseline))


def _chosen(arguments: argparse.Namespace) -> Format:
    output = None if is_recording(arguments.output) else arguments.output
    return format_for(arguments.format, output)


def write_report(findings: Findings, arguments: argparse.Namespace, usual: TextIO) -> None:
    """Write the report where the user wants it, or else to `usual`."""
    output = None if is_recording(arguments.output) else arguments.output
    if arguments.gen_suppressions is not None:
        with output_stream(output, usual) as stream:
            write_suppressions(findings, stream, arguments.gen_suppressions)
        return
    chosen, options = _chosen(arguments), _report_options(arguments)
    if output is not None:
        with report_file(output) as file:
            write_to_file(chosen, findings, file, options)
    elif chosen.write is not None:
        chosen.write(findings, usual, options)
        usual.flush()


def _report_options(arguments: argparse.Namespace) -> ReportOptions:
    root = arguments.source_root.resolve() if arguments.source_root is not None else None
    return ReportOptions(TextOptions(top=arguments.top, tree=arguments.tree), str(root) if root is not None else None)


def report_format(format_: str | None, output: Path | None) -> str:
    if format_ is not None:
        return format_
    return "json" if output is not None and output.suffix == ".json" else "text"


def check_output(arguments: argparse.Namespace) -> None:
    """Raise CannotWrite or CannotRead for what the user named, before anything is traced."""
    analysis_options(arguments)
    _chosen(arguments)
    for directory in arguments.debug_dir:
        if not Path(directory).is_dir():
            raise CannotRead(f"there is no directory {directory}", "check the path after --debug-dir")
    if arguments.baseline is not None:
        _check_baseline(arguments.baseline)
    path = arguments.output
    if path is None:
        return
    if is_recording(path) and arguments.format not in (None, "text"):
        raise UsageError(
            f"{path} is to be a recording: it has no format {arguments.format}",
            f"record first, then: refleak report {path} --format {arguments.format} -o FILE",
        )
    try:
        check_writable(path)
    except OSError as error:
        raise CannotWrite(f"cannot write {path}: {error.strerror}") from None


def _check_baseline(path: Path) -> None:
    try:
        os.close(open_plain(path))
    except OSError as error:
        raise CannotRead(f"cannot read {path}: {error.strerror}", "check the path after --baseline") from None


@contextmanager
def output_stream(path: Path | None, usual: TextIO) -> Iterator[TextIO]:
    if path is None:
        yield usual
        usual.flush()
        return
    with report_file(path) as file:
        stream = io.TextIOWrapper(file, "utf-8", write_through=True)
        yield stream
        stream.detach()


def failure_status(findings: Findings, arguments: argparse.Namespace) -> int | None:
    """Return the exit status that --fail-on and --error-exitcode ask for, or None where they do not."""
    if arguments.fail_on is None and arguments.error_exitcode is None:
        return None
    broken = (arguments.fail_on or ANY_FINDING).broken_by(findings)
    if not broken:
        return None
    if arguments.fail_on is not None:
        print(f"refleak: failed: {visible('; '.join(broken))}", file=sys.stderr)
    return _FAILED if arguments.error_exitcode is None else int(arguments.error_exitcode)
