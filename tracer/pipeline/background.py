"""A trace that goes on in a thread while the caller does something else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType

from tracer.pipeline.judge_options import JudgeOptions
from tracer.pipeline.report import Report
from tracer.pipeline.trace import Trace


class BackgroundTrace:
    """A context manager: the probes are in place when the body begins, and gone when it has ended.

    `report` is there after the body. An error of the trace is raised at the end of the body.
    """

    def __init__(self, start: Callable[[], Trace], judging: JudgeOptions) -> None:
        """`start` makes the trace, when the body is to begin."""
        self._start, self._judging = start, judging
        self._thread = threading.Thread(target=self._run, name="refleak")
        self._trace: Trace | None = None
        self._report: Report | None = None
        self._failure: BaseException | None = None

    def __enter__(self) -> BackgroundTrace:
        trace = self._start()
        trace.begin()
        self._trace = trace
        self._thread.start()
        return self

    def _run(self) -> None:
        try:
            self._running.run()
        except BaseException as error:  # it is raised where the body ends
            self._failure = error

    @property
    def _running(self) -> Trace:
        if self._trace is None:
            raise RuntimeError("a trace begins with its `with` block")
        return self._trace

    @property
    def pid(self) -> int:
        return self._running.pids[0]

    def checkpoint(self) -> None:
        """Mark this moment: the report tells what came and went between marks."""
        self._running.ask_for_checkpoint()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the target has ended, or for so many seconds; return whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:  # fmt: skip
        running = self._running
        try:
            running.stop()
            self._thread.join()
            if self._failure is not None:
                raise self._failure
            if error is None:
                self._report = running.report(self._judging)
        finally:
            running.close()
        if running.recording_failure is not None:
            raise running.recording_failure

    @property
    def report(self) -> Report:
        """What was found; only after the body."""
        if self._report is None:
            raise RuntimeError("there is a report once the `with` block has ended")
        return self._report
