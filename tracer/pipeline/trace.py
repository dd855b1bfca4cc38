"""One trace: its target, its session, and the recording beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from tracer.binaries.open_files import raise_limit
from tracer.capture.capture_options import CaptureOptions, Progress
from tracer.capture.fitted_limits import fitted_to_memory
from tracer.capture.kernel_start import open_session
from tracer.capture.launch import Launched, find_command, launch, user_of
from tracer.elf.process_makers import may_start_processes
from tracer.errors import CannotWrite, NothingToProbe, UsageError
from tracer.files.cache_folder import cache_directory
from tracer.kernel.maps import Constants
from tracer.model.frames import Symbols
from tracer.model.periods import Checkpoint
from tracer.model.preload_names import PreloadLibrary
from tracer.model.run_statistics import RunStatistics
from tracer.model.snapshot import Snapshot
from tracer.pipeline.preload import library_for
from tracer.pipeline.steps import OnStep, step, unseen
from tracer.pipeline.target_check import check_allocators, check_pids, check_privileges, check_program
from tracer.pipeline.trace_options import TraceOptions

if TYPE_CHECKING:
    from tracer.pipeline.analyst import Analyst, Job
    from tracer.pipeline.judge_options import JudgeOptions
    from tracer.pipeline.recorder import Recorder
    from tracer.pipeline.report import Report
    from tracer.probing.site_finder import SiteFinder

Turn = Callable[[], None]
_LATER = (
    "tracer.capture.assembly", "tracer.pipeline.missing", "tracer.pipeline.naming", "tracer.pipeline.report",
    "tracer.analysis.analysis", "tracer.report.text", "tracer.symbols.holder_names",
)  # fmt: skip
"""What a trace needs only when its target has ended: imported while the kernel looks at the programs."""


class Trace:
    """`launched` and `attached` make one and start nothing of it; then `begin`, `run`, `report` and `close`.

    `stop` and `ask_for_checkpoint` are safe in signal handlers.
    """

    def __init__(
        self, options: TraceOptions, recorder: Recorder | None = None, *, child: Launched | None = None,
        path: str = "", pids: Sequence[int] = (), preload: PreloadLibrary | None = None, on_step: OnStep = unseen,
    ) -> None:
        """Load the programs. `path`: of a child's program; `preload`: what that may load first; `pids`: of who is to be
        attached to, where there is none."""
        self._on_step = on_step
        self.child, self.pids = child, (child.pid,) if child is not None else tuple(pids)
        self.recording_failure: CannotWrite | None = None
        """Why the recording could not be finished, once `report` has tried."""
        self._options, self._recorder, self._path = options, recorder, path
        self._is_main, self._has_begun = True, False
        try:
            with step(on_step, "loading the BPF programs"):
                capture = _capture_options(options, on_step, preload, path if child is not None else None)
                self._session = open_session(capture, lambda: _site_finder(options))
            self._session.endings.stops, self._session.endings.most_bytes = options.stops, options.max_scan
        except BaseException:
            self._abandon()
            raise

    @classmethod
    def launched(
        cls, command: Sequence[str], options: TraceOptions, recorder: Recorder | None = None, on_step: OnStep = unseen
    ) -> Trace:  # fmt: skip
        """Fork a child that waits to become `command`, as the user that is asked for."""
        with _discarding(recorder):
            raise_limit()
            path = find_command(command[0])
            check_privileges()
            check_program(path)
            check_allocators(options.allocators)
            user = user_of(options.user)
            preload = library_for(options, user)
            child = launch(command, user, options.streams)
        return cls(options, recorder, child=child, path=path, preload=preload, on_step=on_step)

    @classmethod
    def attached(
        cls, pids: Sequence[int], options: TraceOptions, recorder: Recorder | None = None, on_step: OnStep = unseen
    ) -> Trace:  # fmt: skip
        """Check that these processes can be traced."""
        with _discarding(recorder):
            if options.preload:
                raise UsageError("--preload is for a program that refleak launches", "give the command, and not -p")
            raise_limit()
            check_privileges()
            check_pids(pids)
            check_allocators(options.allocators)
        return cls(options, recorder, pids=pids, on_step=on_step)

    @property
    def is_under_way(self) -> bool:
        """Whether the target runs with all its probes; a command that was not let go yet can still be left out."""
        return self._has_begun if self.child is None else not self.child.is_held

    def begin(self) -> None:
        """Put all probes in place and let the target go; what fails here leaves nothing behind.

        Raises NothingToProbe, NoSuchTarget; KeyboardInterrupt where nothing was found since `stop` gave it up.
        """
        try:
            if self.child is not None:
                self._session.launch(self.child, self._path)
            else:
                with step(self._on_step, "placing the probes"):
                    self._session.attach(self.pids, tree=self._options.tree)
            self._has_begun = True
        except BaseException as error:
            self._session.close()
            self._abandon()
            if isinstance(error, NothingToProbe) and self._session.mishaps.has_given_up:
                raise KeyboardInterrupt from None
            raise

    def _abandon(self) -> None:
        if self._recorder is not None:
            self._recorder.discard()
        if self.child is not None:
            self.child.abandon()

    def run(self, on_turn: Turn | None = None) -> None:
        """Trace until the target has ended, the time is up or `stop` was called; call `on_turn` every 20 ms or so."""

        def turn() -> None:
            if self._recorder is not None:
                self._recorder.tick(self._session)
            if on_turn is not None:
                on_turn()

        self._is_main = threading.current_thread() is threading.main_thread()
        self._session.run(turn)

    def stop(self) -> None:
        """End `run` soon; in the main thread, what is under way and takes too long is given up."""
        if self._is_main:
            self._session.stop()
        else:
            self._session.stopped = True

    def hurry(self, seconds: float) -> None:
        """Give up whatever takes longer than that from now on: the target was asked to end, and may be held by it."""
        self._session.mishaps.hurry(seconds)

    def ask_for_checkpoint(self) -> None:
        """Take a checkpoint at the next turn."""
        self._session.ask_for_checkpoint()

    def look(self, analyst: Analyst, job: Job, *, scans: bool = False) -> None:
        """Start a job of an analyst on what is known so far. `scans`: with what is lost by now, and who holds the rest,
        for which the target is stopped for a moment."""
        analyst.start(self._session, job, looks=scans)

    def report(self, options: JudgeOptions) -> Report:
        """Name and judge all that is known, once `run` has returned, and finish the recording.

        The recording is written even where names cannot be looked up.
        """
        from tracer.pipeline.naming import symbols_of
        from tracer.pipeline.report import report_of
        from tracer.symbols.holder_names import with_holder_names

        snapshot = self.snapshot()
        try:
            with step(self._on_step, "looking up names"):
                symbols = symbols_of(snapshot, options)
                snapshot = with_holder_names(snapshot, options.symbols)
        except BaseException:
            self._finish_recording(snapshot, None)
            raise
        self._finish_recording(snapshot, symbols)
        again = partial(symbols_of, snapshot)
        return report_of(snapshot, symbols, options, self.exit_status, self._on_step, again)

    def snapshot(self) -> Snapshot:
        """Return all that is known, once `run` has returned."""
        from tracer.capture.assembly import take_snapshot
        from tracer.pipeline.missing import with_missing

        return with_missing(take_snapshot(self._session), self._options)

    def _finish_recording(self, snapshot: Snapshot, symbols: Symbols | None) -> None:
        if self._recorder is None:
            return
        try:
            self._recorder.finish(snapshot, symbols)
        except CannotWrite as error:
            self.recording_failure = error
        self._recorder.close()

    def calls_of(self, site: int, operation: int) -> tuple[int, int]:
        """Return the calls of a described function, and those for objects that nothing was seen to create."""
        return self._session.events.history.calls.of(site, operation)

    def progress(self) -> Progress:
        return self._session.progress()

    @property
    def checkpoints(self) -> Sequence[Checkpoint]:
        """Those that were taken so far."""
        return self._session.checkpoints.taken

    @property
    def statistics(self) -> RunStatistics:
        """What the trace had to do so far, where its options ask for that; else most of it is 0."""
        from tracer.capture.statistics import read_statistics

        return read_statistics(self._session)

    @property
    def exit_status(self) -> int | None:
        """Return a launched target's status as a shell gives it; None where it is not known or there is none."""
        return self._session.exit_status

    def close(self, *, exits: bool = False) -> None:
        """Take all probes out of the target, which runs on if it still does, and let go of everything.

        `exits`: this process is about to end, and need not wait for the kernel where the target has ended too.
        """
        self._session.close(exits=exits)


@contextmanager
def _discarding(recorder: Recorder | None) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if recorder is not None:
            recorder.discard()
        raise


def _capture_options(
    options: TraceOptions, on_step: OnStep, preload: PreloadLibrary | None, launched: str | None
) -> CaptureOptions:  # fmt: skip
    """`launched`: the program, None where processes are attached to."""
    follow = options.follow_forks if options.follow_forks is not None else launched is not None or options.tree
    return CaptureOptions(
        cache_directory(), fitted_to_memory(options.limits), follow, options.duration_s, options.selection,
        preload=preload, interpreters=options.interpreters, reachability=options.reachability,
        hindrance=_hindrance(options),
        constants=Constants(counts=options.statistics),
        on_compile=lambda: on_step("compiling the BPF programs, which is done once"),
        may_fork=lambda: launched is None or may_start_processes(launched),
        on_give_way=lambda: on_step("waiting for earlier runs, whose probes the kernel takes away one by one"),
    )


def _site_finder(options: TraceOptions) -> SiteFinder:
    from tracer.pipeline.site_finder import site_finder

    for module in _LATER:
        import_module(module)
    return site_finder(options)


def _hindrance(options: TraceOptions) -> str | None:
    """Return why it cannot be told what is lost: words of blocks that are not known look like free memory."""
    if not options.heap:
        return "blocks were not traced (--refs-only)"
    return None if options.selection.keeps_all else "not all blocks were kept"

