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
from collections.abc import Callable
from types import FrameType
from typing import Protocol

from tracer.capture.assembly import take_snapshot
from tracer.capture.launch import Launched, find_command, launch, user_of
from tracer.capture.maps import Limits
from tracer.capture.open_files import raise_limit
from tracer.capture.session import CaptureOptions, Progress, Session
from tracer.cli import options
from tracer.cli.catalogue import catalogue_of
from tracer.cli.checkpoint_notice import CheckpointNotice
from tracer.cli.interval import IntervalReports, is_stream
from tracer.cli.missing import check_found, with_missing
from tracer.cli.recorder import Recorder, recorder_of
from tracer.cli.reporting import check_output, failure_status, judge, symbolized, write_report
from tracer.cli.site_finder import site_finder
from tracer.cli.status_line import StatusLine
from tracer.cli.target_check import check_pid, check_privileges, check_program
from tracer.elf.cache_folder import cache_directory
from tracer.errors import CannotWrite, UsageError
from tracer.model.findings import Findings
from tracer.model.snapshot import Snapshot
from tracer.report.json_report import write_json_line
from tracer.report.text import TextOptions, write_text

NAME = "trace"
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
    options.add_verbosity(parser)


class Watcher(Protocol):
    """What looks on while a trace runs."""

    def tick(self, session: Session) -> None:
        """Do what is due; called often, and someone may be held meanwhile."""

    def finish(self) -> None:
        """The target has ended, or the user has ended the trace."""

    def close(self) -> None:
        """Let go of everything, whatever has happened."""


def run(arguments: argparse.Namespace) -> int:
    """Trace, report, and return the exit status: the target's, or --error-exitcode's."""
    return run_watched(arguments, None if arguments.interval is None else IntervalReports(arguments))


def run_watched(arguments: argparse.Namespace, reports: Watcher | None) -> int:
    """Trace as `run` does, with someone who looks on."""
    if (arguments.pid is None) == (not arguments.command):
        raise UsageError("say what to trace: --exec CMD ... or -p PID", "refleak --help shows examples")
    signal.signal(signal.SIGUSR1, lambda *_: None)  # asks for a checkpoint, once there is something to check
    raise_limit()
    check_output(arguments)
    options.selection_of(arguments)
    catalogue_of(arguments)  # raises what is wrong with the specs, before anything is started
    recorder = recorder_of(arguments)
    try:
        session = _launched(arguments) if arguments.command else _attached(arguments)
    except BaseException:
        if recorder is not None:
            recorder.discard()
        raise
    try:
        _run_until_end(session, arguments, recorder, reports)
        findings = _reported(with_missing(take_snapshot(session), arguments), arguments, recorder)
    finally:
        if reports is not None:
            reports.close()
        session.close()
    return _exit_status(session, findings, arguments)


def _reported(snapshot: Snapshot, arguments: argparse.Namespace, recorder: Recorder | None) -> Findings:
    """Write the recording if there is one, and the report: to the user's file, else to stdout, or to stderr where
    stdout is a launched target's.

    The report comes even where the recording could not be written, and the recording even where symbols fail.
    """
    symbols, failure = None, None
    try:
        symbols = symbolized(snapshot, arguments)
    finally:
        if recorder is not None:
            try:
                recorder.finish(snapshot, symbols)
            except CannotWrite as error:
                failure = error
            recorder.close()
    findings = judge(snapshot, symbols, arguments)
    usual = sys.stdout if arguments.command is None else sys.stderr
    if is_stream(arguments):
        write_json_line(findings, usual)
    else:
        try:
            write_report(findings, arguments, usual)
        except CannotWrite as error:
            failure = failure or error
            write_text(findings, sys.stderr, TextOptions(top=arguments.top, tree=arguments.tree))
    if failure is not None:
        raise failure
    if recorder is not None:
        print(f"refleak: recorded; next: {recorder.next_command()}", file=sys.stderr)
    return findings


def _capture_options(arguments: argparse.Namespace) -> CaptureOptions:
    follow = arguments.follow_forks if arguments.follow_forks is not None else bool(arguments.command)
    limits = Limits(
        objects=arguments.max_objects, stacks=arguments.max_stacks, threads=arguments.max_threads,
        event_ring_bytes=_power_of_two(arguments.ring_size), freed=arguments.keep_freed,
    )
    return CaptureOptions(
        site_finder(arguments).find, cache_directory(), limits, follow, arguments.duration,
        options.selection_of(arguments), guests=arguments.guest == "auto",
        reachability=bool(arguments.command) and arguments.reachability == "auto", hindrance=_hindrance(arguments),
    )


def _hindrance(arguments: argparse.Namespace) -> str | None:
    """Return why it cannot be told what is lost: words of blocks that are not known look like free memory."""
    if arguments.refs_only:
        return "blocks were not traced (--refs-only)"
    return None if options.selection_of(arguments).keeps_all else "not all blocks were kept"


def _power_of_two(size: int) -> int:
    return 1 << max(12, (size - 1).bit_length())


def _launched(arguments: argparse.Namespace) -> Session:
    path = find_command(arguments.command[0])
    check_privileges()
    check_program(path)
    held = launch(arguments.command, user_of(arguments.user), arguments.streams)
    try:
        session = Session(_capture_options(arguments))
        _handle_signals(session, held)
        session.launch(held, path)
    except BaseException:
        held.abandon()
        raise
    return session


def _attached(arguments: argparse.Namespace) -> Session:
    check_privileges()
    check_pid(arguments.pid)
    session = Session(_capture_options(arguments))
    _handle_signals(session, None)
    session.attach(arguments.pid)
    return session


def _handle_signals(session: Session, child: Launched | None) -> None:
    """Let the first Ctrl-C end an attached trace. A launched target gets it from the terminal itself, and the trace
    goes on to its end; a second one reports what is there. Other requests to end are passed on to it."""

    interrupts = 0

    def interrupted(_number: int, _frame: FrameType | None) -> None:
        nonlocal interrupts
        interrupts += 1
        if child is None or interrupts > 1:
            session.stop()

    def asked_to_end(number: int, _frame: FrameType | None) -> None:
        if child is None or interrupts or child.poll() is not None:  # its number may be another's by now
            session.stop()
        else:
            os.kill(child.pid, number)
            session.mishaps.hurry(_PATIENCE_SECONDS)

    signal.signal(signal.SIGUSR1, lambda *_: session.ask_for_checkpoint())
    signal.signal(signal.SIGINT, interrupted)
    signal.signal(signal.SIGQUIT, signal.SIG_IGN if child is not None else interrupted)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, asked_to_end)


def _run_until_end(
    session: Session, arguments: argparse.Namespace, recorder: Recorder | None, reports: Watcher | None
) -> None:
    line = StatusLine(sys.stderr, enabled=not arguments.quiet and arguments.pid is not None)
    notice = CheckpointNotice(sys.stderr, enabled=not arguments.quiet)

    def turn(ask: Callable[[], Progress]) -> None:
        line.show(ask)
        notice.tick(session)
        if recorder is not None:
            recorder.tick(session)
        if reports is not None:
            reports.tick(session)

    try:
        session.run(turn)
        if reports is not None:
            reports.finish()
    finally:
        line.clear()


def _exit_status(session: Session, findings: Findings, arguments: argparse.Namespace) -> int:
    failed = failure_status(findings, arguments)
    if failed is not None:
        return failed
    check_found(findings)
    if session.mode == "attached":
        return 0
    status = session.exit_status
    return status if status is not None else STOPPED_EARLY
