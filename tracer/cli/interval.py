"""`--interval TIME`: what is outstanding, every TIME, each time with the difference to the time before;
`--scan-live`: with what is lost and who holds the rest, and at each checkpoint too."""

from __future__ import annotations

import argparse
import math
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from tracer.analysis.comparison import compare
from tracer.analysis.retained import lost_bytes_of, more, retainers
from tracer.api import Trace
from tracer.cli.choices import is_recording, is_stream, judge_options
from tracer.cli.reporting import text_color, text_width, write_report
from tracer.cli.standard_streams import complain
from tracer.late_dataclasses import dataclass
from tracer.model.findings import AllocationTotals, Findings
from tracer.model.frames import Symbols
from tracer.model.snapshot import Coverage, Snapshot
from tracer.pipeline.analyst import Analyst
from tracer.pipeline.judge_options import JudgeOptions
from tracer.pipeline.naming import symbols_so_far
from tracer.pipeline.report import report_of
from tracer.report.interval_report import write_interval, write_interval_json
from tracer.symbols.holder_names import with_holder_names

_NOTHING = Findings(
    mode="", duration_ns=0, complete=True, target_ended=False, losses=(), coverage=Coverage(), processes=(),
    allocations=AllocationTotals(0, 0, 0, 0), types=(), leaks=(), errors=(),
)  # fmt: skip


@dataclass(frozen=True)
class _Memory:
    """What the next report needs of this one."""

    symbols: Symbols
    findings: Findings


class IntervalReports:
    """Writes a report whenever it is time for one and the last is done; nothing waits for it, but for the target
    while its memory is read, where that is asked for."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments, self._every = arguments, float(arguments.interval or math.inf)
        self._checkpoints = 0
        """Those that a report was begun for."""
        self._judging = judge_options(arguments)
        self._analyst = Analyst(complain)
        self._next = time.monotonic() + self._every
        self._number = 0

    def tick(self, trace: Trace) -> None:
        """Start the next report if it is time. Call it often."""
        now = time.monotonic()
        is_marked = self._arguments.scan_live and len(trace.checkpoints) > self._checkpoints
        if (now < self._next and not is_marked) or self._analyst.busy:
            return
        self._checkpoints = len(trace.checkpoints)
        self._number += 1
        if now >= self._next:
            self._next = max(self._next + self._every, now)
        job = partial(_report, self._arguments, self._judging, self._number)
        trace.look(self._analyst, job, scans=self._arguments.scan_live)

    def finish(self) -> None:
        """Wait for the report that is being written."""
        self._analyst.stop()

    def close(self) -> None:
        self._analyst.stop(at_once=True)


def _report(
    arguments: argparse.Namespace, judging: JudgeOptions, number: int, snapshot: Snapshot, before: Any
) -> _Memory:
    known: Symbols = {} if before is None else before.symbols
    snapshot = with_holder_names(snapshot, judging.symbols)
    symbols = symbols_so_far(snapshot, judging, known)
    report = report_of(snapshot, symbols, judging)
    findings = report.findings
    old = _NOTHING if before is None else before.findings
    comparison = compare(old, findings, with_held=True)
    usual: TextIO = sys.stdout if arguments.command is None else sys.stderr
    grown = {change.id: change.grown.bytes or 0 for word in ("new", "grown") for change in comparison.of(word)}
    lost = more(lost_bytes_of(findings.leaks), lost_bytes_of(old.leaks))
    growing = retainers(findings.leaks, {id_: size for id_, size in grown.items() if size > 0}, lost)
    file = numbered(arguments.output, number)
    if file is not None:
        write_report(report, arguments, usual, file)
    if is_stream(arguments):
        write_interval_json(number, findings, comparison, usual, growing)
    elif not arguments.quiet:
        width, color = text_width(arguments, usual), text_color(arguments, usual)
        write_interval(number, findings, comparison, usual, arguments.top, growing, width=width, color=color)
    return _Memory(symbols, findings)


def numbered(output: Path | None, number: int) -> Path | None:
    """Return FILE.0001.SUFFIX for a report to FILE.SUFFIX; None where no report goes to a file."""
    if output is None or is_recording(output):
        return None
    name, dot, suffixes = output.name.partition(".")
    return output.with_name(f"{name}.{number:04}{dot}{suffixes}")
