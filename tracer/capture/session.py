"""One trace: set up, run to its end, and its Snapshot."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from tracer.binaries.foreign import why_foreign
from tracer.binaries.open_binaries import Binaries, OpenBinary
from tracer.capture.aggregated_events import AggregatedEvents
from tracer.capture.allocator_memory import AllocatorStorage
from tracer.capture.capture_options import CaptureOptions, Progress
from tracer.capture.checkpoints import Checkpoints
from tracer.capture.collected_stacks import CollectedStacks
from tracer.capture.ended_books import EndedBooks
from tracer.capture.first_program import first_program
from tracer.capture.follower import Follower
from tracer.capture.heap_course import HeapCourse
from tracer.capture.hold_counts import HoldCounts
from tracer.capture.kernel_start import KernelStart
from tracer.capture.launch import Launched
from tracer.capture.losses import Losing
from tracer.capture.map_walk import MapWalk
from tracer.capture.trace_clock import TraceClock
from tracer.capture.wakes import Wakes
from tracer.interpreters.runtimes import InterpreterRuntimes
from tracer.jit.generated_code import GeneratedCode
from tracer.kernel.kernel_records import UnknownFrees
from tracer.kernel.links import Attacher
from tracer.kernel.releases import SOON_SECONDS, Releases
from tracer.mishaps import Mishaps
from tracer.model.records import ProcessState
from tracer.model.snapshot import Coverage, Loss, Process, Untraced
from tracer.model.snapshot import Mapping as MappedRange
from tracer.probing.prober import Prober
from tracer.probing.site_finder import SiteFinder
from tracer.probing.site_table import SiteTable
from tracer.probing.untraced import descendants_of, older_children, untraced_programs
from tracer.procfs import process as proc
from tracer.scanning.aborted_frees import AbortedFrees
from tracer.scanning.endings import Endings
from tracer.spaces.address_spaces import Spaces
from tracer.spaces.mapping_tables import MappingTables, UnwindRows
from tracer.spaces.processes import ProcessTable
from tracer.unwinding.stack_completion import StackCompletion
from tracer.unwinding.stack_writer import StackWriter

_TICK_SECONDS = 0.02
_APART_SECONDS = 0.01
"""Of two turns that take the stacks and events out: whoever is held next waits for those between to end."""
_SPARE_SECONDS = 0.004
"""Of a tick in which nobody was held, for what could be done at the end too."""
_NICE = -10
_PATIENCE_SECONDS = 1.0
"""So long may what is under way go on when the trace is to end."""
_EVERYWHERE = (
    "tracefs is not to be had (see `refleak doctor`): while the trace went on, the places of forks and execs had a "
    "breakpoint in every process that maps the same libc"
)


def _left_out(count: int) -> str:
    words = ("process", "was", "it") if count == 1 else ("processes", "were", "them")
    return f"{count:,} {words[0]} started by what was attached to {words[1]} not traced: --tree traces {words[2]} too"


class Session:
    """Owns everything that one trace has in the kernel and in this process.

    `launch` or `attach`, then `run` until the target has ended or `stop` is called, then `snapshot`
    (tracer.capture.assembly), then `close`.
    """

    def __init__(self, options: CaptureOptions, site_finder: SiteFinder, start: KernelStart) -> None:
        """What this opens beside what the start has opened is closed by whoever made that, if it fails."""
        self._start, self._opened, self.kernel = start, start.opened, start.kernel
        self.options = options
        self.mode = "attached"
        self.stopped = self._is_closed = False
        self.processes = ProcessTable()
        self.checkpoints = Checkpoints()
        self.mishaps = Mishaps()
        self.binaries = Binaries(options.cache)
        self._opened.callback(self.binaries.close)
        maps, can_hold = self.kernel.maps, self.kernel.programs.can_hold
        self.clock = TraceClock()
        self.holds = HoldCounts(enabled=options.constants.counts)
        self._releases = Releases(maps)
        self._opened.callback(StackWriter(maps, self._releases).close)
        self.events = AggregatedEvents(self.kernel.events, lambda: self.clock.started_ns)
        self.sites = SiteTable(maps)
        rows = UnwindRows(maps, options.cache, self.mishaps)
        self._interpreters = InterpreterRuntimes(maps, self.kernel.programs.interpreters, self.mishaps)
        tables = MappingTables(maps, self._interpreters)
        self.spaces = Spaces(self.binaries, rows, tables, self.mishaps)
        self._attacher = Attacher(self.kernel.programs, start.uprobe_events, maps)
        self._prober = Prober(
            site_finder, self.sites, rows, self._attacher, self.mishaps, follow=options.follow,
            misses_ends=self._interpreters.misses_ends, holds_ends=options.reachability and options.hindrance is None,
            preload=options.preload, look=self.kernel.first_looks.look,
        )
        self.binaries.on_stale = self._prober.withdraw
        self.code = GeneratedCode(self.binaries, rows, self.spaces, self._drain_stacks, self.mishaps)
        self._opened.callback(self.code.close)
        hindrance = options.hindrance or (None if can_hold else "this kernel cannot hold it")
        self.endings = Endings(
            maps, self.clock.since_start, hindrance, lambda c: self._completion.unwinder(c), self.events.has_told,
            AllocatorStorage(self.binaries).find,
        )
        self.aborted_frees = AbortedFrees(maps, self.clock.since_start, lambda c: self._completion.unwinder(c))
        self.ended_books = EndedBooks(maps, self.processes)
        self._follower = Follower(
            maps, self.binaries, self._prober, self.spaces, self.code, (self.events, self.ended_books), self.processes,
            self.clock.since_start, self.mishaps, self.endings, self.aborted_frees, self._releases, can_hold=can_hold,
        )
        self._completion = StackCompletion(maps, self.spaces, self._follower.look_again)
        self.heap_course = HeapCourse(MapWalk(maps, self.ended_books).space_totals)
        self.stacks = CollectedStacks(self._completion, self.code.seen, self.mishaps)
        self._opened.callback(self._detach)
        self._losing: tuple[Losing, ...] = (
            self.kernel, self.mishaps, self.kernel.programs, tables, rows, self.spaces, self.code, self.sites,
            self._prober, self._follower.unfollowed, self.ended_books, self.binaries,
        )
        self.kernel.select(options.selection)
        self._older_children: tuple[Untraced, ...] = ()
        """Of those that were attached to: they are not traced, unless they are known by their fork."""
        self._launched: Launched | None = None
        self._pids: tuple[int, ...] = ()

    def _arm(self) -> None:
        before = os.getpriority(os.PRIO_PROCESS, 0)
        with suppress(OSError):  # those that are held wait for this process
            os.setpriority(os.PRIO_PROCESS, 0, _NICE)
            self._opened.callback(os.setpriority, os.PRIO_PROCESS, 0, before)
        self.kernel.beat()
        self._attacher.attach_tracepoints()
        self.kernel.shared["follow"] = int(self.options.follow)
        self.clock.start()
        self.kernel.shared["armed"] = 1

    def launch(self, launched: Launched, path: str) -> None:
        """Put all probes on a held child and let it go; raises NothingToProbe, or NoSuchTarget if it cannot exec."""
        self.mode, self._launched, self._pids = "launched", launched, (launched.pid,)
        self.kernel.enter(launched.pid, ProcessState.WAITS)
        self._tell_of_unknown_frees(UnknownFrees.ARE_BAD)
        binaries: Sequence[OpenBinary] = ()
        variables: Mapping[str, str] = {}
        with self.mishaps.attempt():
            binaries, variables = first_program(self.binaries, self._prober, path)
        self._prober.launches(launched.pid, binaries)
        self._prober.check(path, binaries)
        self._follower.expect_exec(launched.pid)
        self._interpreters.load_programs(binaries)
        self._arm()
        launched.release(variables)

    def attach(self, pids: Sequence[int], *, tree: bool = False) -> None:
        """Put all probes on running processes and arm them together; raises NothingToProbe where none has any.

        `tree`: on those that descend from them too. They are asked for here, when there is no more to wait for.
        """
        self._pids = tuple(pids)
        self._tell_of_unknown_frees(UnknownFrees.MAY_BE_OLDER)
        binaries = [binary for pid in pids for binary in self._join(pid)]
        joined = [*pids]
        for child in filter(proc.is_alive, descendants_of(pids) if tree else ()):
            with self.mishaps.attempt():
                binaries += self._join(child)
            if proc.is_alive(child):
                joined.append(child)
            else:
                self.processes.forget(child)
        self._prober.check(f"process{'es' * (len(pids) > 1)} {', '.join(map(str, pids))}", binaries)
        self._arm()
        self._older_children = older_children(joined, tree=tree)
        for pid in joined:
            found = self.spaces.refresh(pid, 0, 0)
            self._prober.link(pid, found)
            with self.mishaps.attempt():
                self.code.find((pid, 0), found)

    def _tell_of_unknown_frees(self, which: UnknownFrees) -> None:
        self.kernel.shared["unknown_frees"] = which if self.options.selection.keeps_all else UnknownFrees.ARE_COUNTED

    def _join(self, pid: int) -> Sequence[OpenBinary]:
        """Put all probes on a running process; return its binaries."""
        self.kernel.enter(pid, ProcessState.TRACED)
        self.processes.add(pid, 0, proc.parent(pid), proc.command_line(pid), 0)
        space = pid, 0
        self._follower.began(space)
        binaries = self.spaces.refresh(*space, 0)
        if not binaries and (why := why_foreign(f"/proc/{pid}/exe")):
            self._follower.unfollowed.foreign[space] = why
        self._prober.check_code(pid, self.spaces.executable(space))
        self._prober.joins(pid, binaries)
        with self.mishaps.attempt():
            self.code.logs.find_dump(space)
        self._follower.mapped(space, binaries)
        return binaries

    def stop(self) -> None:
        """End the trace at the next turn of the loop, which comes soon; safe in a signal handler."""
        self.stopped = True
        if not self._is_closed:  # its clock would end this process later
            self.mishaps.hurry(_PATIENCE_SECONDS)

    def ask_for_checkpoint(self) -> None:
        """Take a checkpoint at the next turn of the loop; safe in a signal handler."""
        self.checkpoints.asked += 1

    def run(self, on_turn: Callable[[], None] | None = None) -> None:
        """Read what the kernel side tells until the target has ended, `stop` was called or the time is up."""
        deadline = None if self.options.duration_s is None else time.monotonic() + self.options.duration_s
        try:
            with Wakes(self.kernel.control.fd, self._pids) as wakes:
                drained = 0.0
                while not self._is_over(deadline):
                    is_quiet = not wakes.wait(SOON_SECONDS if self._releases.has_waiting else _TICK_SECONDS)
                    self.serve()
                    if is_quiet or time.monotonic() - drained > _APART_SECONDS:
                        self._drain_rest()
                        with self.mishaps.attempt():
                            self.ended_books.tend(self.drain)
                        drained = time.monotonic()
                    if is_quiet:
                        self.stacks.settle(_SPARE_SECONDS)
                        self._follower.look_after()
                        self._attacher.events.rest()
                        if self.options.selection.keeps_all:
                            self.heap_course.look(self.clock.duration_ns, lambda: self.processes.spaces_alive)
                    self._take_checkpoints()
                    if on_turn is not None:
                        on_turn()
        finally:
            if self.options.reachability:
                with self.mishaps.attempt(hurried=False):
                    self.endings.look_into(self.processes.spaces_alive, self._end_counting, self.serve)
            self._end_counting()
            self.drain()
            self._take_checkpoints()
            if self.options.selection.keeps_all:
                with self.mishaps.attempt():
                    self.heap_course.end(self.clock.duration_ns, self.processes.spaces_since)
            if self.target_ended:  # nobody is held any more, nor will be
                self._start.uprobe_events.turns.release()
            self.mishaps.calm()

    def look_into(self, then: Callable[[int], None]) -> None:
        """Stop all processes, read their memory, call `then` with the time of that (ns), and let them go."""
        stopped_ns = 0

        def freeze() -> None:
            nonlocal stopped_ns
            stopped_ns = self.clock.duration_ns
            self.drain()

        self.endings.look_into(self.processes.spaces_alive, freeze, self.serve, lambda: then(stopped_ns))

    def serve(self) -> None:
        """Answer those that are held."""
        self._releases.again()
        self._follow()
        while self._follower.work():
            self._follow()

    def _end_counting(self) -> None:
        self.kernel.shared["armed"] = 0
        self.clock.end()

    def _take_checkpoints(self) -> None:
        """Take all that were asked for, the last ones of a trace that ends too."""
        while self.checkpoints.asked > len(self.checkpoints.taken):
            history, maps = self.events.history, self.kernel.maps
            self.checkpoints.take(self.clock.duration_ns, maps, self.ended_books, history, self.drain)

    def progress(self) -> Progress:
        """Return what a status line shows."""
        return Progress(self.clock.elapsed_ns, self.events.history.events_seen, self.kernel.lost())

    def _is_over(self, deadline: float | None) -> bool:
        if self.stopped or (deadline is not None and time.monotonic() >= deadline):
            return True
        if self._launched is not None:
            if self._launched.poll() is None:
                return False
            self.drain()  # the last that it did may have been to fork
            return not any(map(self._lives, self.processes.living))
        return not any(map(self._lives, (*self._pids, *self.processes.living)))

    def _lives(self, pid: int) -> bool:
        if proc.is_alive(pid):
            return True
        self.drain()
        if pid in self.processes.living:  # its last word was lost
            self.processes.exited(pid, None, self.clock.since_start(time.monotonic_ns()))
        return False

    def drain(self) -> None:
        """Take everything out of the rings: control first, since someone may be held."""
        self.serve()
        self._drain_rest()

    def _drain_rest(self) -> None:
        self._drain_stacks()
        self.code.logs.poll()
        self.events.read()

    def _follow(self) -> None:
        """Handle what happened to processes; what was dumped before it, by the mappings as they were."""
        self.endings.let_go()
        happened = self.holds.noted(self.kernel.control.read_blobs())
        self._take_dumps()
        self._follower.handle(self.endings.put_off(happened))
        self.kernel.shared["behind"] = 0
        with self.mishaps.attempt():
            self.endings.settle()

    def _take_dumps(self) -> None:
        for blob in self.kernel.dumps.read_blobs():
            with self.mishaps.attempt():
                self._completion.add((blob,))

    def _drain_stacks(self) -> None:
        began = time.monotonic_ns()
        scripts, stacks = self.kernel.interpreter_frames.read_blobs(), self.kernel.stacks.read_blobs()
        self._take_dumps()  # each was sent before its stack
        self.stacks.take(scripts, stacks, began)

    @property
    def notes(self) -> tuple[str, ...]:
        interpreters = (*self.kernel.notes, *self._interpreters.notes, *self.stacks.script_frames.notes)
        everywhere = (_EVERYWHERE,) if self._prober.stands_everywhere else ()
        older = self._older_children
        left_out = (_left_out(len(older)),) if older and not self.options.follow else ()
        return (*left_out, *interpreters, *self.code.notes, *everywhere, *self._prober.preloading.notes)

    @property
    def losses(self) -> Iterator[Loss]:
        """Yield what could not be kept so far, here and on the kernel side."""
        for losing in self._losing:
            yield from losing.losses

    def coverage(self, processes: Sequence[Process], mappings: Sequence[MappedRange]) -> Coverage:
        """Return what was probed, and what ran without: of these processes and of what they mapped, and of older
        children."""
        binaries = {binary.id: binary for binary in self.binaries.all}
        known = {process.pid for process in processes}
        older = self._older_children if self.options.follow else ()  # else nobody asked for them
        untraced = tuple(one for one in older if one.pid not in known)
        with self.mishaps.attempt():
            foreign = self._follower.unfollowed.foreign
            untraced = (*untraced_programs(processes, mappings, binaries, self.sites.infos[1:], foreign), *untraced)
        return replace(self.sites.coverage, untraced=untraced)

    @property
    def target_ended(self) -> bool:
        return not self.processes.living and not (self.mode == "attached" and any(map(proc.is_alive, self._pids)))

    @property
    def exit_status(self) -> int | None:
        """Return the launched target's status as a shell gives it: its code, or 128 + signal; None if unknown."""
        status = self._launched.poll() if self._launched is not None else None
        if status is None:
            return None
        return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def close(self, *, exits: bool = False) -> None:
        """Detach everything from the target, which runs on if it still does, and close all that was opened.

        `exits`: this process is about to end. What no running process meets is then left to the closer: to wait for
        the kernel, 0.4 s and more, is of no use to anybody.
        """
        self._is_closed = True
        self._start.leaves_rest = exits and self._start.closer.is_ready
        self.kernel.shared["armed"] = 0
        self._opened.close()
        self.mishaps.calm()

    def _detach(self) -> None:
        if self._start.leaves_rest and self.target_ended:
            self._attacher.leave_all()
        else:
            self._attacher.detach_all(leaves_places=self._start.leaves_rest)
