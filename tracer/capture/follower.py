"""Follows the target through forks, execs, the dynamic loader and exits; releases those that are held."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from tracer.binaries.open_binaries import Binaries, OpenBinary
from tracer.binaries.start_libraries import VARIABLES
from tracer.binaries.start_up import start_up_binaries
from tracer.capture.unfollowed import Unfollowed
from tracer.jit.generated_code import GeneratedCode
from tracer.kernel.known_spaces import known_process
from tracer.kernel.maps import Maps
from tracer.kernel.releases import Releases
from tracer.mishaps import Mishaps
from tracer.model import records
from tracer.model.addresses import Space
from tracer.model.operations import INTERPRETED
from tracer.model.records import ControlKind, ProcessState
from tracer.probing.changed_code import lacks_breakpoints
from tracer.probing.copied_code import mend_copies
from tracer.probing.prober import Prober
from tracer.procfs.maps import MapsEntry
from tracer.procfs.process import executes, has_other_rights, variables
from tracer.procfs.roots import path_of_process, root_of
from tracer.procfs.tracers import debugger_of
from tracer.scanning.aborted_frees import AbortedFrees
from tracer.scanning.endings import Endings
from tracer.spaces.address_spaces import Spaces
from tracer.spaces.listener import Moment, SpaceListener
from tracer.spaces.processes import ProcessTable

_SLOW = (ControlKind.FORK, ControlKind.FORKS)
_ARRIVAL_SECONDS = 0.02
"""A forked child that was not held by then will not be."""


def _space(control: np.void) -> Space:
    return int(control["pid"]), int(control["generation"])


def _range(control: np.void) -> tuple[int, int]:  # start and bytes
    return int(control["range"]["start"]), int(control["range"]["length"])


class Follower:
    """Handles the control ring's records; `clock` turns the kernel's time into the trace's.

    Those that keep something for each address space are listeners, told in the order of `_listeners`.
    """

    def __init__(
        self, maps: Maps, binaries: Binaries, prober: Prober, spaces: Spaces, code: GeneratedCode,
        further: Sequence[SpaceListener], processes: ProcessTable, clock: Callable[[int], int], mishaps: Mishaps,
        endings: Endings, aborted_frees: AbortedFrees, releases: Releases, *, can_hold: bool,
    ) -> None:
        self._binaries, self._prober, self._spaces, self._processes = binaries, prober, spaces, processes
        self._endings, self._aborted_frees = endings, aborted_frees
        self._code = code
        self._listeners: Sequence[SpaceListener] = (spaces, *code.listeners, *further)
        self._clock, self._mishaps, self._can_hold = clock, mishaps, can_hold
        self._maps = maps
        self._releases = releases
        self._unheld: dict[Space, float] = {}
        """Forked children that have not been seen to be held, and since when (s, monotonic)."""
        self._headless: set[Space] = set()
        """Processes whose first thread has ended before others."""
        self.unfollowed = Unfollowed(can_hold=can_hold)
        self._renumbered: set[int] = set()
        """Processes that are about to exec by another thread than the first, by which the kernel knows their links."""
        self._expected: set[int] = set()
        """Processes that are about to exec what has been linked."""
        self._with_rights: set[int] = set()
        """Processes that have executed a program with rights of its own, and are still to begin it."""
        self._debugged: dict[int, str] = {}
        """Processes that have no probes, since this debugger runs what they are about to exec."""
        self._started: set[int] = set()
        """Processes that are held at their program's first step, by what is handled now."""
        self._begun: set[int] = set()
        """Of these whose exec was handled: what they map is still to be looked at."""
        self._waiting: deque[np.void] = deque()
        self._waiting_pids: Counter[int] = Counter()
        self._handlers: dict[int, Callable[[np.void], None]] = {
            ControlKind.FORK: self._forked,
            ControlKind.FORKED: self._arrives,
            ControlKind.FORKS: lambda _: None,  # it is held, so that its next child comes when this one is ready
            ControlKind.EXECUTES: self._executes,
            ControlKind.EXECUTES_AT: self._executes,
            ControlKind.EXEC: self._execed,
            ControlKind.LOADER: self._loaded,
            ControlKind.STARTED: self._loaded,
            ControlKind.MAPPED: self._mapped,
            ControlKind.UNMAPPED: self._mapped,
            ControlKind.PATCHES: self._patches,
            ControlKind.LEAVES: self._keep_on,
            ControlKind.THREAD_ENDED: self._keep_on,
            ControlKind.EXIT: self._exited,
            ControlKind.JIT: lambda c: code.interface.called(_space(c), int(c["descriptor"])),
            ControlKind.ENDING: self._ends,
            ControlKind.DISPATCHES: self._dispatches,
            ControlKind.FRAMES: lambda c: code.registry.registered(_space(c), int(c["frames"])),
            ControlKind.FRAMES_GONE: lambda c: code.registry.deregistered(_space(c), int(c["frames"])),
        }

    def handle(self, blobs: Iterable[bytes]) -> None:
        """Handle records, those of each process in order, forks last: to link a child takes its time, and others that
        are held need not wait for it. `work` does what is left."""
        controls = [np.frombuffer(blob, records.CONTROL, 1)[0] for blob in blobs]
        self._started = {int(c["pid"]) for c in controls if c["kind"] == ControlKind.STARTED and c["ticket"]}
        for control in controls:
            pid, kind = int(control["pid"]), int(control["kind"])
            if kind in _SLOW or pid in self._waiting_pids:
                self._waiting.append(control)
                self._waiting_pids[pid] += 1
            else:
                self._handle(control)

    def work(self) -> bool:
        """Handle one of the records that wait; return whether there was one."""
        if not self._waiting:
            return False
        control = self._waiting.popleft()
        pid = int(control["pid"])
        self._waiting_pids[pid] -= 1
        if not self._waiting_pids[pid]:
            del self._waiting_pids[pid]
        self._handle(control)
        return True

    def look_after(self) -> None:
        """See to it that children that were not held have the breakpoints that their first steps may have cost them."""
        now = time.monotonic()
        for space in [space for space, since in self._unheld.items() if now - since > _ARRIVAL_SECONDS]:
            del self._unheld[space]
            with self._mishaps.attempt():
                self._prober.renew(space[0], self._spaces.executable(space))
        for space in tuple(self._headless):
            with self._mishaps.attempt():
                self._look_at_headless(space)

    def _handle(self, control: np.void) -> None:
        """Handle a record; whoever is held by it is released after it, whatever happens, and the trace goes on."""
        try:
            with self._mishaps.attempt():
                self._handlers[int(control["kind"])](control)
        finally:
            if control["ticket"]:
                self._releases.release(int(control["tid"]), int(control["ticket"]))

    def _moment(self, control: np.void) -> Moment:
        kernel_ns = int(control["time_ns"])
        return Moment(kernel_ns, self._clock(kernel_ns))

    def _now(self) -> Moment:
        now = time.monotonic_ns()
        return Moment(now, self._clock(now))

    def began(self, space: Space) -> None:
        """Tell the listeners of a process that is attached to."""
        for listener in self._listeners:
            listener.began(space, self._now())

    def mapped(self, space: Space, binaries: Sequence[OpenBinary]) -> None:
        """Tell the listeners what a process maps; what one of them meets in its memory does not keep the others."""
        moment = self._now()
        for listener in self._listeners:
            with self._mishaps.attempt():
                listener.mapped(space, binaries, moment)

    def _ended(self, space: Space, moment: Moment) -> None:
        for listener in reversed(self._listeners):
            listener.ended(space, moment)

    def _forked(self, control: np.void) -> None:
        fork, child = control["fork"], _space(control)
        parent, moment = (int(fork["parent"]), int(fork["parent_generation"])), self._moment(control)
        shares = bool(fork["shares_memory"])
        self._processes.forked(*child, parent[0], moment.trace_ns, shares_memory=shares)
        if parent in self.unfollowed.debugged:
            self.unfollowed.debugged.add(child)
            return
        self.unfollowed.forked(child[0], shares_memory=shares)
        if not shares:
            self._unheld[child] = time.monotonic()
            for listener in self._listeners:
                listener.forked(parent, child, moment)
            if parent in self.unfollowed.patching:
                self.unfollowed.patching.add(child)
        placed = () if shares else self._spaces.executable(child)
        self._prober.forked(parent[0], child[0], shares_memory=shares, placed=placed)

    def _arrives(self, control: np.void) -> None:
        self.unfollowed.arrives(int(control["pid"]))
        if control["ticket"]:
            self._unheld.pop(_space(control), None)

    def _keep_on(self, control: np.void) -> None:
        """A process goes on without its first thread, by which the kernel may know that it has probes."""
        pid = int(control["pid"])
        if pid not in self._expected:  # else another one executes a program, by which all others end
            self.unfollowed.lapses += self._prober.keep_on(pid, leaves=control["kind"] == ControlKind.LEAVES)
            if control["kind"] == ControlKind.THREAD_ENDED:
                self._headless.add(_space(control))

    def _look_at_headless(self, space: Space) -> None:
        """Look whether a process without its first thread has its breakpoints: the kernel takes them out with the next
        probe that anybody takes out of the same places, since it asks that thread whose memory it is."""
        pid, chosen = space[0], self._prober.preloading.chosen
        probed = {
            binary.id: {p.file_offset for _, p in chosen(pid, binary) if p.site.function.operation not in INTERPRETED}
            for binary in self._prober.linked(pid)
        }
        if lacks_breakpoints(pid, self._spaces.executable(space), probed):
            self._headless.discard(space)
            self.unfollowed.lapses += 1

    def _ends(self, control: np.void) -> None:
        if (space := _space(control)) in self._headless:
            self._look_at_headless(space)
        with self._mishaps.attempt():
            self._aborted_frees.held(control)
        self._endings.held(control)

    def _leaves_maker(self, pid: int) -> None:
        self.unfollowed.leaves_maker(pid, lambda: any(binary.placements for binary in self._prober.linked(pid)))

    def expect_exec(self, pid: int) -> None:
        """Take it that what a process executes next has its probes already."""
        self._expected.add(pid)

    def _executes(self, control: np.void) -> None:
        """Before an exec: find the probes of what is going to run, and link those that would come too late."""
        pid, path = int(control["pid"]), bytes(control["path"]).decode(errors="surrogateescape")
        self._leaves_maker(pid)
        if debugger := debugger_of(pid):
            self._debugged[pid] = debugger
            self._prober.leave(pid)
            return
        self._binaries.recheck()
        if path:
            path = path_of_process(pid, path)
            environment = variables(pid, VARIABLES)  # mostly what it hands on: what it adds is seen when it is mapped
            binaries: Sequence[OpenBinary] = ()
            with self._mishaps.attempt():
                binaries = start_up_binaries(self._binaries, path, path, root_of(pid), environment)
            if not self._prober.starts(pid, binaries, int(control["thread"])):
                self._renumbered.add(pid)
            self.unfollowed.executes(pid, "" if binaries else path)
            if binaries:
                self._expected.add(pid)
                current = self._processes.current(pid)
                is_no_child = current is not None and current.parent is None  # of those there may be thousands
                if control["ticket"] and is_no_child:
                    self._endings.executes(control)

    def _execed(self, control: np.void) -> None:
        (pid, generation), moment = _space(control), self._moment(control)
        current = self._processes.current(pid)
        before = (pid, current.generation) if current is not None else None
        if before is not None and before != (pid, generation):
            self._ended(before, moment)
        path = bytes(control["path"]).decode(errors="surrogateescape")
        self._processes.execed(pid, generation, path, moment.trace_ns)
        self._leaves_maker(pid)
        self._prober.executed(pid)
        if pid in self._renumbered:
            self._renumbered.discard(pid)
            self._expected.discard(pid)
            self._prober.detach(pid)
        self._binaries.recheck()
        if has_other_rights(pid):
            self._prober.gained_rights(pid)
            self._with_rights.add(pid)
        told = self._debugged.pop(pid, None)
        if debugger := debugger_of(pid) or told:
            self._begins_debugged((pid, generation), debugger)
        elif pid in self._started:  # it stands in the loader by now: what it maps is read for that, once
            self._begun.add(pid)
        else:
            self._begins(pid, generation, self._spaces.refresh(pid, generation, moment.trace_ns))
        for listener in self._listeners:
            listener.executed(before, (pid, generation), moment)

    def _begins(self, pid: int, generation: int, binaries: Sequence[OpenBinary]) -> None:
        """A process has begun a program: see whether it is held in time, by what it maps."""
        is_expected = pid in self._expected
        is_held = self._can_hold and self._prober.holds_start(pid, binaries)
        if not (is_held and (binaries or is_expected)) and not (is_expected and not self._can_hold):
            self.unfollowed.begins((pid, generation), binaries, with_rights=pid in self._with_rights)
            self._link(pid, generation, binaries)
        self._expected.discard(pid)
        self._with_rights.discard(pid)

    def _begins_debugged(self, space: Space, debugger: str) -> None:
        self.unfollowed.begins_debugged(space, debugger)
        self._prober.leave(space[0])
        self._expected.discard(space[0])
        self._with_rights.discard(space[0])

    def _link(self, pid: int, generation: int, binaries: Sequence[OpenBinary]) -> None:
        """Give a process the probes of what it maps; none where its probes were taken out, or code of another program
        is translated."""
        space = pid, generation
        if self.unfollowed.is_left(space):
            return
        if any(binary.is_translator and executes(pid, binary.fd) for binary in binaries):
            self._leave(space, self.unfollowed.translated)
            return
        self._prober.maps(pid, binaries)

    def _leave(self, space: Space, of_its_kind: set[Space]) -> None:
        of_its_kind.add(space)
        self._prober.leave(space[0])

    def _dispatches(self, control: np.void) -> None:
        """Before the system calls of a thread become signals: a return probe ends with one (uretprobe, Linux 6.11)."""
        self._leave(_space(control), self.unfollowed.dispatching)

    def look_again(self, space: Space) -> Sequence[MapsEntry]:
        """Read the mappings of a process of which code was seen that is in none; none if it is no longer the same."""
        pid, generation = space
        process = known_process(self._maps, pid)
        if process is None or process["state"] != ProcessState.TRACED or process["generation"] != generation:
            return ()
        self._link(pid, generation, self._spaces.refresh(pid, generation, self._now().trace_ns))
        return self._spaces.last_read

    def _loaded(self, control: np.void) -> None:
        pid, generation = _space(control)
        self._processes.name_again(pid)
        self._binaries.recheck()
        binaries = self._spaces.refresh(pid, generation, self._moment(control).trace_ns)
        if pid in self._begun:
            self._begun.discard(pid)
            self._begins(pid, generation, binaries)
        self._link(pid, generation, binaries)
        self.mapped((pid, generation), binaries)

    def _mapped(self, control: np.void) -> None:
        """The program changed its executable memory itself."""
        self._binaries.recheck()
        pid, generation = _space(control)
        binaries = self._spaces.refresh(pid, generation, self._moment(control).trace_ns)
        if binaries and control["kind"] == ControlKind.MAPPED:
            self._spaces.note_code(pid, generation, *_range(control))
            self._code.logs.find_dump((pid, generation))
            self._mend(control)
        self._link(pid, generation, binaries)

    def _mend(self, control: np.void) -> None:
        """Make good the breakpoints in what a process makes executable, if it copied probed code to there."""
        start, length = _range(control)
        end = start + length
        inside = [entry for entry in self._spaces.last_read if entry.start < end and entry.end > start]
        pid = int(control["pid"])
        self.unfollowed.copies += mend_copies(pid, inside, partial(self._prober.excerpts, pid))

    def _patches(self, control: np.void) -> None:
        """Before a process writes to code. Where there are probes in it, all of them go, since the kernel would put
        breakpoints into the midst of what it writes; and what it copied of such code before is made good."""
        space, (start, length) = _space(control), _range(control)
        end = start + length
        mapped = list(self._spaces.executable(space))
        self._mapped(control)
        if not any(self._prober.probes_in(space[0], of, m, start, end) for m, of, _ in mapped):
            return
        excerpts = self._prober.excerpts(space[0])
        self._leave(space, self.unfollowed.patching)
        mend_copies(space[0], self._spaces.last_read, lambda: excerpts)

    def _exited(self, control: np.void) -> None:
        space, moment = _space(control), self._moment(control)
        self.unfollowed.exits(space[0], int(control["wait_status"]))
        self._unheld.pop(space, None)
        self._headless.discard(space)
        for pids in (self._renumbered, self._expected, self._begun, self._with_rights):
            pids.discard(space[0])
        self._processes.exited(space[0], int(control["wait_status"]), moment.trace_ns)
        self._ended(space, moment)
        self._prober.forget(space[0])
