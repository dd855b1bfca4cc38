"""Report what a recording holds.

Gives every report that the traced run could give, the same byte for byte, on any machine: no root, no BCC, and neither
the target nor its files are needed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tracer.cli import options
from tracer.cli.choices import is_recording
from tracer.cli.reporting import check_output, failure_status, judging_for, write_report
from tracer.cli.step_line import StepLine
from tracer.errors import UsageError
from tracer.pipeline.report import report_of_recording

NAME = "report"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", type=Path, metavar="RECORDING", help="a file made with -o FILE.refleak")
    options.add_report(parser)
    options.add_policy(parser)
    options.add_verbosity(parser)


def run(arguments: argparse.Namespace) -> int:
    """Report; return 0, or what --fail-on and --error-exitcode ask for."""
    if is_recording(arguments.output):
        raise UsageError("a report cannot be written as a recording", "give -o another suffix: .txt, .json")
    judging = judging_for(arguments)
    check_output(arguments, judging)
    line = StepLine(sys.stderr, enabled=not arguments.quiet)
    report = report_of_recording(arguments.recording, judging, line.show)
    write_report(report, arguments, sys.stdout, pages=True)
    return failure_status(report.findings, arguments) or 0
