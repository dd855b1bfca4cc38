"""From a snapshot and its symbols, or from a file, to findings: analyse, set aside, hold against the baseline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tracer.analysis.analysis import analyse
from tracer.analysis.setting_aside import set_aside_again
from tracer.errors import CannotRead
from tracer.files.plain_file import read_plain, read_start
from tracer.model.findings import Findings
from tracer.model.frames import Symbols
from tracer.model.snapshot import Snapshot
from tracer.pipeline.judge_options import JudgeOptions
from tracer.pipeline.naming import as_written, recorded_symbols
from tracer.recording.chunks import MAGIC

_LARGEST_REPORT = 1 << 28
_LONGEST_START = 256


def judge(snapshot: Snapshot, symbols: Symbols, options: JudgeOptions, *, freed_stacks: bool = False) -> Findings:
    """Analyse, and leave out what the baseline has. `freed_stacks`: list what was freed too."""
    findings = _analysed(snapshot, symbols, options, freed_stacks)
    if options.baseline is None:
        return findings
    from tracer.analysis.baseline import against_baseline

    return against_baseline(findings, read_findings(options.baseline, options), str(options.baseline))


def _analysed(snapshot: Snapshot, symbols: Symbols, options: JudgeOptions, freed_stacks: bool = False) -> Findings:
    chosen = replace(options.analysis, freed_stacks=freed_stacks)
    return analyse(as_written(snapshot, options), symbols, chosen)


def is_recording_file(path: Path) -> bool:
    """Tell by its first bytes whether a file is a recording. Raises CannotRead."""
    try:
        return read_start(path, len(MAGIC)) == MAGIC
    except OSError as error:
        raise _unreadable(path, error) from None


def check_baseline(path: Path, options: JudgeOptions) -> None:
    """Read a baseline before anything is traced: a trace whose baseline cannot be read has no report. Raises
    CannotRead."""
    try:
        recording = is_recording_file(path)
    except CannotRead as error:
        raise CannotRead(str(error), "check the path after --baseline") from None
    if recording:
        from tracer.recording.reader import read_recording

        read_recording(path)
    else:
        read_report(path, options)


def check_kind(path: Path) -> None:
    """Raise CannotRead for a file that by its start is neither a recording nor a JSON report."""
    if not is_recording_file(path) and not read_start(path, _LONGEST_START).lstrip().startswith(b"{"):
        raise CannotRead(
            f"{path} is neither a recording nor a JSON report of refleak", "make one with -o FILE.refleak or .json"
        )


def read_findings(path: Path, options: JudgeOptions) -> Findings:
    """Return the findings of a recording, which is analysed, or of a JSON report. Raises CannotRead."""
    if not is_recording_file(path):
        return read_report(path, options)
    from tracer.recording.reader import read_recording

    recording = read_recording(path)
    return _analysed(recording.snapshot, recorded_symbols(recording, options), options)


def read_report(path: Path, options: JudgeOptions) -> Findings:
    """Return what a JSON report says: of its entries only that is judged again what sets them aside."""
    from tracer.report.json_reader import read_json

    try:
        return set_aside_again(read_json(read_plain(path, _LARGEST_REPORT), str(path)), options.analysis)
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> CannotRead:
    return CannotRead(f"cannot read {path}: {error.strerror}", "check the path")
