"""refleak as a library: trace a command or a process, or read a recording, and get a report with typed findings.

Tracing needs what `refleak` needs (root, BCC); reading needs neither. What fails raises a class of `tracer.errors`,
whose message is one line and whose `hint` says what to do. docs/api.md has examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from tracer.capture.capture_options import Progress
from tracer.errors import RefleakError
from tracer.lazy_names import names_of
from tracer.model.selection import Selection
from tracer.pipeline.judge_options import JudgeOptions
from tracer.pipeline.trace import Trace
from tracer.pipeline.trace_options import TraceOptions

if TYPE_CHECKING:
    from tracer.pipeline.background import BackgroundTrace
    from tracer.pipeline.recorder import Recorder
    from tracer.pipeline.report import Report
else:
    __getattr__ = names_of("tracer.pipeline", {"BackgroundTrace": "background", "Report": "report"})

__all__ = [
    "BackgroundTrace", "JudgeOptions", "Progress", "RefleakError", "Report", "Selection", "Trace", "TraceOptions",
    "attach", "launch", "read", "trace",
]  # fmt: skip

_TRACING, _JUDGING = TraceOptions(), JudgeOptions()
_AnyPath = str | PathLike[str]


def trace(
    command: Sequence[str], options: TraceOptions = _TRACING, judging: JudgeOptions = _JUDGING, *,
    recording: _AnyPath | None = None,
) -> Report:  # fmt: skip
    """Run a command from its first instruction to its end, and return what it leaks.

    `recording`: a file that is written while it runs, for `read`; there must be none of that name.
    """
    running = Trace.launched(command, options, _recorder(recording, options))
    running.begin()
    try:
        running.run()
        report = running.report(judging)
    finally:
        running.close()
    if running.recording_failure is not None:
        raise running.recording_failure
    return report


def launch(
    command: Sequence[str], options: TraceOptions = _TRACING, judging: JudgeOptions = _JUDGING, *,
    recording: _AnyPath | None = None,
) -> BackgroundTrace:  # fmt: skip
    """Run a command, and trace it while the body of a `with` block runs; what lives at its end is outstanding.

        with tracer.launch(["./server"]) as running:
            requests(...)
            running.checkpoint()
        print(running.report.verdict)
    """
    from tracer.pipeline.background import BackgroundTrace

    return BackgroundTrace(lambda: Trace.launched(command, options, _recorder(recording, options)), judging)


def attach(
    pids: int | Sequence[int], options: TraceOptions = _TRACING, judging: JudgeOptions = _JUDGING, *,
    recording: _AnyPath | None = None,
) -> BackgroundTrace:  # fmt: skip
    """Trace one running process, or several, while the body of a `with` block runs."""
    from tracer.pipeline.background import BackgroundTrace

    return BackgroundTrace(lambda: Trace.attached(_several(pids), options, _recorder(recording, options)), judging)


def _several(pids: int | Sequence[int]) -> Sequence[int]:
    return (pids,) if isinstance(pids, int) else pids


def read(path: _AnyPath, judging: JudgeOptions = _JUDGING) -> Report:
    """Return the report of a recording (`-o FILE.refleak`) or of a JSON report. Raises CannotRead."""
    from tracer.pipeline.report import report_of_file

    return report_of_file(Path(path), judging)


def _recorder(path: _AnyPath | None, options: TraceOptions) -> Recorder | None:
    if path is None:
        return None
    from tracer.pipeline.recorder import Recorder

    return Recorder(Path(path), options.selection, force=False, with_symbols=True)
