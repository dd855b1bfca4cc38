"""Trace a command or a process, and report what it leaks.

Launch a command and trace it from its first instruction, or attach to a running process; when it has ended (or at
Ctrl-C of an attached trace, or after --duration) report the counted objects and the allocations that are left, with
the stacks that made them.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING, Protocol

from tracer.api import JudgeOptions, Trace, TraceOptions
from tracer.cli import options
from tracer.cli.checkpoint_notice import CheckpointNotice
from tracer.cli.choices import is_recording, is_stream, next_command
from tracer.cli.interrupts import check_interrupts, interrupt
from tracer.cli.misplaced_option import misplaced_option
from tracer.cli.packages import check_packages
from tracer.cli.reporting import check_output, failure_status, judging_for, write_report
from tracer.cli.standard_streams import complain
from tracer.cli.status_line import StatusLine
from tracer.cli.step_line import StepLine
from tracer.cli.stops import stop_after
from tracer.cli.target_words import check_target, pids_of
from tracer.cli.time_line import TimeLine
from tracer.cli.trace_choices import recorder_of, trace_options
from tracer.errors import CannotWrite, UsageError

if TYPE_CHECKING:
    from tracer.api import Report
    from tracer.model.findings import Findings

NAME = "trace"
TAKES_TARGET = True
USAGE = "refleak [OPTION ...] CMD [ARGUMENT ...]\n       refleak [OPTION ...] -p PID"
MOST_USED = (
    "pid", "command", "refs_only", "heap_only", "presets", "format", "output", "top", "suppressions", "interval",
    "fail_on",
)  # fmt: skip
STOPPED_EARLY = 130
_PATIENCE_SECONDS = 5.0
"""So long may what is under way go on when the target was asked to end: it may be held by it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(parser)
    options.add_interval(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what every way to trace has."""
    options.add_target(parser)
    options.add_kinds(parser)
    options.add_selection(parser)
    options.add_specs(parser)
    options.add_limits(parser)
    options.add_report(parser)
    options.add_recording(parser)
    options.add_policy(parser)
    options.add_allow_missing(parser)
    options.add_stats(parser)
    options.add_verbosity(parser)


class Watcher(Protocol):
    """What looks on while a trace runs."""

    def tick(self, trace: Trace) -> None:
        """Do what is due; called often, and someone may be held meanwhile."""

    def finish(self) -> None:
        """The target has ended, or the user has ended the trace."""

    def close(self) -> None:
        """Let go of everything, whatever has happened."""


def run(arguments: argparse.Namespace) -> int:
    """Trace, report, and return the exit status: the target's, or --error-exitcode's."""
    if arguments.scan_live and arguments.reachability == "off":
        raise UsageError("--scan-live looks for what --reachability off does not", "give one of them")
    if arguments.interval is None and not arguments.scan_live:
        return run_watched(arguments, None)
    from tracer.cli.interval import IntervalReports

    return run_watched(arguments, IntervalReports(arguments))


def run_watched(arguments: argparse.Namespace, reports: Watcher | None) -> int:
    """Trace as `run` does, with someone who looks on."""
    check_target(arguments, "trace", "refleak")
    if arguments.tree and arguments.pid is None:
        raise UsageError("--tree is of a process that runs: -p PID --tree", "a command's children are traced anyhow")
    line = TimeLine(enabled=arguments.stats)
    line.mark("imports, options")
    check_packages()
    signal.signal(signal.SIGUSR1, lambda *_: None)  # asks for a checkpoint, once there is something to check
    try:
        judging = judging_for(arguments)
        check_output(arguments, judging)
        chosen = trace_options(arguments)
        _ = chosen.catalogue  # raises what is wrong with the specs, before anything is started
        trace = _begun(arguments, chosen, line)
    except KeyboardInterrupt:
        what = f"{arguments.command[0]} was started" if arguments.command else "the trace began"
        raise KeyboardInterrupt(f"before {what}") from None
    try:
        _run_until_end(trace, arguments, reports)
        line.mark("the trace itself")
        findings = _reported(trace, judging, arguments)
        line.mark("names, findings, the report")
        if arguments.stats:
            _write_statistics(trace)
    finally:
        if reports is not None:
            reports.close()
        trace.close(exits=True)
    line.mark("the end of the probes")
    line.write(sys.stderr)
    _tell_misplaced(trace, arguments)
    return _exit_status(trace, findings, arguments)


def _begun(arguments: argparse.Namespace, chosen: TraceOptions, times: TimeLine) -> Trace:
    recorder = recorder_of(arguments, chosen)
    line = StepLine(sys.stderr, enabled=not arguments.quiet)
    if arguments.command:
        trace = Trace.launched(arguments.command, chosen, recorder, line.show)
    else:
        trace = Trace.attached(pids_of(arguments), chosen, recorder, line.show)
    times.mark("maps and programs in the kernel, further imports")
    handle_signals(trace)
    trace.begin()
    times.mark("sites found, probes in place")
    return trace


def _reported(trace: Trace, judging: JudgeOptions, arguments: argparse.Namespace) -> Findings:
    """Write the report: to the user's file, else to stdout, or to stderr where stdout is a launched target's.

    It comes even where the recording could not be written.
    """
    report = trace.report(judging)
    failures = [trace.recording_failure, _write(report, arguments)]
    for failure in filter(None, failures):
        raise failure
    if is_recording(arguments.output):
        print(f"refleak: recorded; next: {next_command(arguments.output)}", file=sys.stderr)
    return report.findings


def _write(report: Report, arguments: argparse.Namespace) -> CannotWrite | None:
    """Return why the user's file could not be written: then the report goes to stderr."""
    usual = sys.stdout if arguments.command is None else sys.stderr
    if is_stream(arguments):
        from tracer.report.json_report import write_json_line

        write_json_line(report.findings, usual)
        return None
    try:
        write_report(report, arguments, usual)
    except CannotWrite as error:
        from tracer.report.text import write_text
        from tracer.report.text_options import TextOptions

        write_text(report.findings, sys.stderr, TextOptions(top=arguments.top, tree=arguments.balance))
        return error
    return None


def handle_signals(trace: Trace) -> None:
    """Let the first Ctrl-C end an attached trace. A launched target gets it from the terminal itself, and the trace
    goes on to its end; a second one reports what is there, or, where there is nothing yet, ends refleak. Other requests
    to end are passed on to it."""

    interrupts, child = 0, trace.child

    def interrupted(number: int, frame: FrameType | None) -> None:
        nonlocal interrupts
        interrupts += 1
        if interrupts > 1 and not trace.is_under_way:
            interrupt(number, frame)
        if child is None or interrupts > 1:
            trace.stop()

    def asked_to_end(number: int, _frame: FrameType | None) -> None:
        if child is None or interrupts or child.poll() is not None:  # its number may be another's by now
            trace.stop()
        else:
            os.kill(child.pid, number)
            trace.hurry(_PATIENCE_SECONDS)

    signal.signal(signal.SIGUSR1, lambda *_: trace.ask_for_checkpoint())
    signal.signal(signal.SIGINT, interrupted)
    signal.signal(signal.SIGQUIT, signal.SIG_IGN if child is not None else interrupted)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, asked_to_end)
    if child is not None:
        stop_after(child.pid)
    check_interrupts()


def _run_until_end(trace: Trace, arguments: argparse.Namespace, reports: Watcher | None) -> None:
    line = StatusLine(sys.stderr, enabled=not arguments.quiet and arguments.pid is not None)
    notice = CheckpointNotice(sys.stderr, enabled=not arguments.quiet)

    def turn() -> None:
        line.show(trace.progress)
        notice.tick(trace)
        if reports is not None:
            reports.tick(trace)

    try:
        trace.run(turn)
        if reports is not None:
            reports.finish()
    finally:
        line.clear()


def _tell_misplaced(trace: Trace, arguments: argparse.Namespace) -> None:
    """Say that the command got an option that was seemingly meant for refleak: no report would come, and no word."""
    if arguments.quiet or not any(word.startswith("-") for word in arguments.command or ()):
        return
    from tracer.cli.parsing import parser_of

    options = parser_of("")._option_string_actions
    misplaced = misplaced_option(arguments.command, options, failed=bool(trace.exit_status))
    if misplaced is not None:
        complain(f"{misplaced} stands behind the command, which got it: options of refleak come before it")


def _write_statistics(trace: Trace) -> None:
    from tracer.report.run_statistics import statistics_text

    sys.stderr.write(statistics_text(trace.statistics))


def _exit_status(trace: Trace, findings: Findings, arguments: argparse.Namespace) -> int:
    from tracer.pipeline.missing import check_found

    failed = failure_status(findings, arguments)
    if failed is not None:
        return failed
    check_found(findings)
    if trace.child is None:
        return 0
    status = trace.exit_status
    return status if status is not None else STOPPED_EARLY
