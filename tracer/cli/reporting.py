"""A report on paper: where the user wants it, in the format that the user wants."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tracer.analysis.policy import ANY_FINDING, WORDS, Policy
from tracer.cli.choices import is_recording, judge_options
from tracer.cli.pager import paged
from tracer.errors import CannotWrite, NothingFound, UsageError
from tracer.model.visible import visible
from tracer.pipeline.judge_options import JudgeOptions, check
from tracer.report.formats import ReportOptions, format_for
from tracer.report.page import Page, Span, stream_color, stream_width

if TYPE_CHECKING:
    from tracer.model.findings import Findings
    from tracer.pipeline.report import Report

_FAILED = 1
"""Exit status where --fail-on says so and --error-exitcode does not say which."""


def write_report(
    report: Report, arguments: argparse.Namespace, usual: TextIO, output: Path | None = None, *, pages: bool = False
) -> None:  # fmt: skip
    """Write the report where the user wants it, or else to `usual`. `output`: another file than the user's.

    `pages`: a text that is longer than the terminal may go through a pager.
    """
    chosen = _report_output(arguments)
    announces = output is None and chosen is not None
    output = output or chosen
    if arguments.gen_suppressions is not None:
        with output_stream(output, usual) as stream:
            report.write_suppressions(stream, arguments.gen_suppressions)
    elif output is not None:
        report.write(arguments.format, output, _report_options(arguments))
    elif pages and arguments.format in (None, "text"):
        with paged(usual) as stream:
            report.print(stream, "text", _report_options(arguments))
    else:
        report.print(usual, arguments.format or "text", _report_options(arguments))
        usual.flush()
    if announces:
        from tracer.report.verdict_line import verdict

        announce(verdict(report.findings), arguments)


def announce(said: Span, arguments: argparse.Namespace) -> None:
    """Say on a terminal what the verdict is and where the report is, which nobody sees there."""
    if arguments.quiet or not sys.stderr.isatty():
        return
    page = Page(text_width(arguments, sys.stderr))
    page.heading(said.text, said.style, "         ")
    page.line(f"refleak: the report is in {arguments.output}")
    page.write(sys.stderr, text_color(arguments, sys.stderr))
    sys.stderr.flush()


def text_width(arguments: argparse.Namespace, stream: TextIO) -> int:
    """Return the columns of a text, as --width or the terminal says."""
    return stream_width(stream) if arguments.width is None else int(arguments.width)


def text_color(arguments: argparse.Namespace, stream: TextIO) -> bool:
    """Return whether a text has colours, as --color or the terminal says."""
    return stream_color(stream) if arguments.color == "auto" else bool(arguments.color == "always")


def _report_output(arguments: argparse.Namespace) -> Path | None:
    return None if is_recording(arguments.output) else arguments.output


def _report_options(arguments: argparse.Namespace) -> ReportOptions:
    from tracer.report.text_options import TextOptions

    color = None if arguments.color == "auto" else arguments.color == "always"
    text = TextOptions(arguments.width, color, top=arguments.top, tree=arguments.balance, show=arguments.show)
    return ReportOptions(text, source_root(arguments))


def source_root(arguments: argparse.Namespace) -> str | None:
    """Return --source-root as an absolute path."""
    return None if arguments.source_root is None else str(arguments.source_root.resolve())


def judging_for(arguments: argparse.Namespace) -> JudgeOptions:
    """Return how to judge for the format that is asked for. Raises UsageError for one that there is not."""
    chosen = format_for(arguments.format, _report_output(arguments))
    return replace(judge_options(arguments), sums_inherited=not chosen.needs_inherited)


def check_output(arguments: argparse.Namespace, judging: JudgeOptions) -> None:
    """Raise CannotWrite or CannotRead for what the user named, before anything is traced."""
    check(judging)
    if judging.baseline is not None:
        from tracer.pipeline.judgement import check_baseline

        check_baseline(judging.baseline, judging)
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
    """Return the exit status that --fail-on and --error-exitcode ask for, or None where they do not.

    Raises NothingFound where --fail-on names what is no type.
    """
    if arguments.fail_on is None and arguments.error_exitcode is None:
        return None
    policy = arguments.fail_on or ANY_FINDING
    broken = policy.broken_by(findings)
    if not broken:
        _check_names(policy, findings)
        return None
    if arguments.fail_on is not None:
        print(f"refleak: failed: {visible('; '.join(broken))}", file=sys.stderr)
    return _FAILED if arguments.error_exitcode is None else int(arguments.error_exitcode)


def _check_names(policy: Policy, findings: Findings) -> None:
    name = policy.unknown(findings)
    if name is None:
        return
    types = ", ".join(findings.type_names) or "none"
    raise NothingFound(
        f"--fail-on {name}: no type of that name was probed or occurred",
        f"there are the words {', '.join(WORDS)}, and the types: {types}; type:{name} may be missing",
    )
