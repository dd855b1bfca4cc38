"""A report on paper: where the user wants it, in the format that the user wants."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tracer.analysis.policy import ANY_FINDING
from tracer.cli.choices import is_recording
from tracer.errors import CannotWrite, UsageError
from tracer.model.visible import visible
from tracer.pipeline.judge_options import JudgeOptions, check
from tracer.report.formats import ReportOptions, format_for

if TYPE_CHECKING:
    from tracer.model.findings import Findings
    from tracer.pipeline.report import Report

_FAILED = 1
"""Exit status where --fail-on says so and --error-exitcode does not say which."""


def write_report(report: Report, arguments: argparse.Namespace, usual: TextIO, output: Path | None = None) -> None:
    """Write the report where the user wants it, or else to `usual`. `output`: another file than the user's."""
    output = output or _report_output(arguments)
    if arguments.gen_suppressions is not None:
        from tracer.report.suppression_text import write_suppressions

        with output_stream(output, usual) as stream:
            write_suppressions(report.findings, stream, arguments.gen_suppressions)
    elif output is not None:
        report.write(arguments.format, output, _report_options(arguments))
    else:
        report.print(usual, arguments.format or "text", _report_options(arguments))
        usual.flush()


def _report_output(arguments: argparse.Namespace) -> Path | None:
    return None if is_recording(arguments.output) else arguments.output


def _report_options(arguments: argparse.Namespace) -> ReportOptions:
    from tracer.report.text import TextOptions

    text = TextOptions(top=arguments.top, tree=arguments.balance, show=arguments.show)
    return ReportOptions(text, source_root(arguments))


def source_root(arguments: argparse.Namespace) -> str | None:
    """Return --source-root as an absolute path."""
    return None if arguments.source_root is None else str(arguments.source_root.resolve())


def check_output(arguments: argparse.Namespace, judging: JudgeOptions) -> None:
    """Raise CannotWrite or CannotRead for what the user named, before anything is traced."""
    check(judging)
    format_for(arguments.format, _report_output(arguments))
    path = arguments.output
    if path is None:
        return
    if is_recording(path) and arguments.format not in (None, "text"):
        raise UsageError(
            f"{path} is to be a recording: it has no format {arguments.format}",
            f"record first, then: refleak report {path} --format {arguments.format} -o FILE",
        )
    from tracer.recording.output_place import check_writable

    try:
        check_writable(path)
    except OSError as error:
        raise CannotWrite(f"cannot write {path}: {error.strerror}") from None


@contextmanager
def output_stream(path: Path | None, usual: TextIO) -> Iterator[TextIO]:
    if path is None:
        yield usual
        usual.flush()
        return
    from tracer.pipeline.report_file import report_file

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
