"""Compare two runs: which leaks and errors are new, gone, grown or shrunk.

Each of A (before) and B (after) is a recording or a JSON report. Entries are the same if their ids are: the id
is made of kind, type and the functions of the stack, so a rebuild or another line number does not change it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TextIO

from tracer.cli import options
from tracer.cli.choices import judge_options
from tracer.cli.pager import paged
from tracer.cli.reporting import announce, output_stream, source_root, text_color, text_width
from tracer.errors import UsageError
from tracer.lazy_names import called_later
from tracer.model.comparison import Comparison
from tracer.pipeline.judgement import check_kind
from tracer.pipeline.report import report_of_file
from tracer.pipeline.report_file import report_file
from tracer.report.comparison_report import verdict_span, write_comparison, write_comparison_json
from tracer.report.formats import format_for

NAME = "diff"
_FORMATS = ("text", "json", "html", "sarif", "pprof")
_write_html = called_later("tracer.report.comparison_page", "write_comparison_html")
_write_pprof = called_later("tracer.report.comparison_pprof", "write_comparison_pprof")
_write_sarif = called_later("tracer.report.comparison_sarif", "write_comparison_sarif")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", type=Path, metavar="A", help="recording or JSON report of the run before")
    parser.add_argument("after", type=Path, metavar="B", help="recording or JSON report of the run after")
    options.add_source_root(options.add_formats(parser, _FORMATS), "sarif")
    options.add_analysis(parser)
    options.add_error_exitcode(parser, "exit with N if anything is new or has grown")
    options.add_verbosity(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compare; return 0, or --error-exitcode's status if anything is new or has grown."""
    format_ = format_for(arguments.format, arguments.output).name
    if format_ not in _FORMATS:
        raise UsageError(f"diff does not write {format_}", f"it writes {', '.join(_FORMATS)}: -o changes.json")
    judging = judge_options(arguments)
    _ = judging.analysis  # raises what is wrong with the suppressions first
    for path in (arguments.before, arguments.after):
        check_kind(path)
    before, after = (report_of_file(path, judging) for path in (arguments.before, arguments.after))
    comparison = after.compared_to(before)
    if format_ == "pprof":
        with report_file(arguments.output) as file:
            _write_pprof(comparison, file)
        return _ended(comparison, arguments)
    pages = arguments.output is None and format_ == "text"
    with paged(sys.stdout) if pages else output_stream(arguments.output, sys.stdout) as stream:
        _write(comparison, format_, stream, arguments)
    return _ended(comparison, arguments)


def _ended(comparison: Comparison, arguments: argparse.Namespace) -> int:
    if arguments.output is not None:
        announce(verdict_span(comparison), arguments)
    return int(arguments.error_exitcode) if arguments.error_exitcode is not None and comparison.worse else 0


def _write(comparison: Comparison, format_: str, stream: TextIO, arguments: argparse.Namespace) -> None:
    if format_ == "json":
        write_comparison_json(comparison, stream)
    elif format_ == "html":
        _write_html(comparison, stream, (str(arguments.before), str(arguments.after)))
    elif format_ == "sarif":
        _write_sarif(comparison, stream, source_root(arguments))
    else:
        width, color = text_width(arguments, stream), text_color(arguments, stream)
        write_comparison(comparison, stream, arguments.top, width=width, color=color)
