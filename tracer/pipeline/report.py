"""Report of a trace, a recording or a JSON report, and the ways to write it."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tracer.analysis.policy import parse_policy
from tracer.errors import UsageError
from tracer.model.findings import ErrorFinding, Findings, Leak, TypeRow
from tracer.model.frames import LinkedNames, Symbols
from tracer.model.periods import Checkpoint
from tracer.model.snapshot import Snapshot
from tracer.pipeline.judge_options import JudgeOptions
from tracer.pipeline.judgement import is_recording_file, judge, read_report
from tracer.pipeline.linked_names import linked_names
from tracer.pipeline.naming import recorded_symbols
from tracer.pipeline.report_file import report_file
from tracer.pipeline.steps import OnStep, step, unseen
from tracer.report.formats import NAMES, Format, ReportOptions, format_for, write_to_file
from tracer.report.verdict_line import verdict

if TYPE_CHECKING:
    from tracer.model.comparison import Comparison

_DEFAULTS = JudgeOptions()
_AS_USUAL = ReportOptions()


class Report:
    """Findings that are made when they are first asked for, and the checkpoints of the trace.

    What was freed is listed only for the formats that want it (pprof): there may be a million stacks of it.
    """

    def __init__(
        self, find: Callable[[bool], Findings], checkpoints: tuple[Checkpoint, ...] = (),
        exit_status: int | None = None, linked: Callable[[], LinkedNames] = dict,
    ) -> None:  # fmt: skip
        """`find` is given whether to list what was freed too. `linked` returns how functions are linked."""
        self._find = find
        self._linked = linked
        self.checkpoints = checkpoints
        self.exit_status = exit_status
        """Of a launched target that ended, as a shell gives it: 128 + signal for one that was killed."""

    @cached_property
    def findings(self) -> Findings:
        """All that the analysis says, as a whole."""
        return self.__dict__["_with_freed"] if "_with_freed" in self.__dict__ else self._find(False)

    @cached_property
    def _with_freed(self) -> Findings:
        return self._find(True)

    @property
    def leaks(self) -> tuple[Leak, ...]:
        """What is left: references before allocations before mappings, the biggest first. `state` says whether it has
        "leaked" (the target has ended) or is "outstanding" (it has not)."""
        return self.findings.leaks

    @property
    def errors(self) -> tuple[ErrorFinding, ...]:
        """Broken rules: puts and frees too many, mismatched ones, counters changed by others."""
        return self.findings.errors

    @property
    def types(self) -> tuple[TypeRow, ...]:
        """Totals of each counted type."""
        return self.findings.types

    @property
    def complete(self) -> bool:
        """Whether nothing was lost; `findings.losses` says what was."""
        return self.findings.complete

    @property
    def verdict(self) -> str:
        """The first line of the report in text."""
        return verdict(self.findings).text

    def broken(self, policy: str) -> tuple[str, ...]:
        """Return a phrase for each condition of a policy, as of --fail-on, that holds: none where the run has passed.

        Raises UsageError where the policy is none.
        """
        try:
            return parse_policy(policy).broken_by(self.findings)
        except ValueError as error:
            raise UsageError(str(error), "docs/policy.md") from None

    def compared_to(self, before: Report) -> Comparison:
        """Return what is new, gone, grown or shrunk since another run."""
        from tracer.analysis.comparison import compare

        return compare(before.findings, self.findings)

    def write(self, format: str | None, path: Path | str, options: ReportOptions = _AS_USUAL) -> None:
        """Write to a file, whole or not at all; with `format` None as the file's suffix says.

        Raises UsageError for a format that there is not, and CannotWrite.
        """
        chosen = _format(format, Path(path))
        with report_file(Path(path)) as file:
            write_to_file(chosen, self._findings_for(chosen), file, options)

    def print(self, stream: TextIO, format: str = "text", options: ReportOptions = _AS_USUAL) -> None:
        """Write to a stream of text. Raises UsageError for a format that is no text."""
        chosen = _format(format, None)
        if chosen.write is not None:
            chosen.write(self._findings_for(chosen), stream, options)

    def text(self, format: str = "text", options: ReportOptions = _AS_USUAL) -> str:
        """Return the report in a format of text."""
        stream = io.StringIO()
        self.print(stream, format, options)
        return stream.getvalue()

    def write_suppressions(self, stream: TextIO, syntax: str) -> None:
        """Write a suppression for each entry and error. `syntax`: "lsan" or "valgrind", which wants names as linked."""
        from tracer.report.suppression_text import write_suppressions

        write_suppressions(self.findings, stream, syntax, self._linked() if syntax == "valgrind" else {})

    def _findings_for(self, chosen: Format) -> Findings:
        return self._with_freed if chosen.needs_freed else self.findings


def _format(name: str | None, path: Path | None) -> Format:
    if name is not None and name not in NAMES:
        raise UsageError(f"{name!r} is no format", f"there are {', '.join(NAMES)}")
    return format_for(name, path)


def report_of(
    snapshot: Snapshot, symbols: Symbols, options: JudgeOptions = _DEFAULTS, exit_status: int | None = None,
    on_step: OnStep = unseen, named_again: Callable[[JudgeOptions], Symbols] | None = None,
) -> Report:  # fmt: skip
    """Return the report of a snapshot. `named_again`: looks the symbols up anew, by other options."""

    def find(freed: bool) -> Findings:
        with step(on_step, "analysing"):
            return judge(snapshot, symbols, options, freed_stacks=freed)

    def linked() -> LinkedNames:
        if named_again is None or not options.demangle:
            return {}
        with step(on_step, "looking up names"):
            return linked_names(symbols, named_again(replace(options, demangle=False)))

    return Report(find, snapshot.checkpoints, exit_status, linked)


def report_of_file(path: Path, options: JudgeOptions = _DEFAULTS, on_step: OnStep = unseen) -> Report:
    """Return the report of a recording, or what a JSON report says. Raises CannotRead."""
    if not is_recording_file(path):
        findings = read_report(path, options)
        return Report(lambda _: findings)
    return report_of_recording(path, options, on_step)


def report_of_recording(path: Path, options: JudgeOptions = _DEFAULTS, on_step: OnStep = unseen) -> Report:
    """Return the report of a recording. Raises CannotRead."""
    with step(on_step, "reading"):
        from tracer.recording.reader import read_recording

        recording = read_recording(path)
    with step(on_step, "looking up names"):
        symbols = recorded_symbols(recording, options)
    again = partial(recorded_symbols, recording)
    return report_of(recording.snapshot, symbols, options, on_step=on_step, named_again=again)
