"""Attach probes to a process: by uprobe_multi links where the kernel has them, else by a perf event per site; to
forked children by events on places that all of them have in common (tracer.kernel.place_events).

Every link and event is a file descriptor, so whatever ends the tracer removes all of its probes. Each holds for one
process: others that map the same files get no breakpoint. The places where forks and execs are followed have one in the
traced processes and their children (tracer.kernel.tree_holds); in every process only where tracefs is not to be had.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import chain

from tracer.binaries.open_binaries import OpenBinary
from tracer.errors import KernelLacks
from tracer.kernel import bpf
from tracer.kernel.breakpoints import remove_breakpoints
from tracer.kernel.place_events import Breakpoints, PlaceEvents
from tracer.kernel.programs import Programs
from tracer.kernel.tree_holds import TreeHolds
from tracer.kernel.uprobe_events import UprobeEvents
from tracer.model.operations import INTERPRETED, Operation, Placement, SiteFlag
from tracer.model.records import ControlKind

EVERY_PROCESS = 0
_NO_BINARY = 0
_MOST_ENDED = 32
"""Ended processes whose links wait: each costs the living some 10 ns a hit."""
_Placed = tuple[int, Placement]
_Links = dict[int, list[int]]
"""Descriptors by the binary that they are in; 0 for those in none."""
_FEW_CHILDREN = 4
"""As many have links: events cost each child less, but some seconds in the background when the trace has ended."""
_CHILD_SECONDS, _MOST_SECONDS = 0.05, 2.0
_CLOSERS = 128
"""Links closed at a time at the end. Each close waits some 40 ms for the kernel's readers, all for the same ones."""
_PATIENCE_SECONDS = 0.1
"""How long a close waits for an attach that is under way."""


@dataclass(frozen=True)
class Hold:
    """A place where a process is held, by its offset in the file; `extra` is what else the kernel side is told."""

    file_offset: int
    kind: ControlKind
    extra: int = 0
    at_return: bool = False

    @property
    def cookie(self) -> int:
        return self.extra << 8 | int(self.kind)


class Attacher:
    """Attaches sites and holds to processes, and closes what ended processes had."""

    def __init__(self, programs: Programs, events: UprobeEvents) -> None:
        self._programs = programs
        self._places = PlaceEvents(events)
        self._tree = TreeHolds(self._places, programs.hold_of_tree, self._keep_for_all)
        self._fds: dict[int, _Links] = {}
        self._by_events: set[int] = set()
        """Processes that have their probes by events, as far as there was time for that."""
        self._tasks: dict[int, tuple[int, ...]] = {}
        """Of these the threads that have the events, where it is not the first."""
        self._kept: dict[int, dict[int, set[int]]] = {}
        """Of these where in which binary they have breakpoints."""
        self._expected: Breakpoints | None = None
        """What a process has of the breakpoints of events that are attached now; None: links are."""
        self._children_seconds = self._last_child_seconds = 0.0
        self._ended: deque[_Links] = deque()
        self._to_close: deque[tuple[int, int]] = deque()
        self._being_closed: tuple[int, int] | None = None
        """Binary, and the thread that closes a link of it."""
        self._closer = ThreadPoolExecutor(1, thread_name_prefix="detach")
        self._quiet = threading.Event()
        self._quiet.set()
        self.attached = 0

    @property
    def waits_for_the_held(self) -> bool:
        """Whether to attach to a place takes until everybody who is held there goes on: the kernel's lock of a place is
        taken while its programs run (register_rwsem in kernel/events/uprobes.c), up to Linux 6.11."""
        return not self._programs.probes.multi

    def note_child(self, seconds: float) -> None:
        """Take it that a child got its probes in so long. Where there are many, or links take long, begin to load what
        probes by events need."""
        self._children_seconds += max(seconds, _CHILD_SECONDS)
        self._last_child_seconds = seconds
        if self._has_many_children:
            self._programs.prepare_events()

    @property
    def _has_many_children(self) -> bool:
        return self._children_seconds >= _FEW_CHILDREN * _CHILD_SECONDS and self._places.can_be_had

    @property
    def can_use_events(self) -> bool:
        """Whether processes can have their probes by events by now. While these are loaded, waits for it as long as the
        last child's links took."""
        if not self._has_many_children:
            return False
        self._programs.wait_for_events(min(self._last_child_seconds, _MOST_SECONDS))
        return self._programs.of_events is not None

    def share_events(self, pid: int) -> None:
        """Take it that a process, which shares its maker's memory, meets its maker's events; attach by events what is
        attached to it from now on."""
        self._by_events.add(pid)

    def has_events(self, pid: int) -> bool:
        """Tell whether a process has its probes by events."""
        return pid in self._by_events

    @contextmanager
    def expecting(self, pid: int, breakpoints: Breakpoints) -> Iterator[None]:
        """Say what a process has of the breakpoints of what the body attaches, where that is done by events."""
        if pid not in self._by_events:
            yield
            return
        if self._places.claim() or self._fds.get(pid):
            self._expected = breakpoints
        else:
            self._by_events.discard(pid)
        try:
            yield
        finally:
            self._expected = None

    @contextmanager
    def beginning(self, pid: int) -> Iterator[bool]:
        """Give a process that has all breakpoints events in the body, if that takes no longer than it can be held; tell
        the body so."""
        if by_events := self._places.claim():
            self._by_events.add(pid)
            self._expected = Breakpoints.THERE
        try:
            yield by_events
        finally:
            self._expected = None

    def tasks(self, pid: int) -> tuple[int, ...]:
        """Return the threads that a process has its events by: while one of them lives."""
        return self._tasks.get(pid, (pid,))

    def move(self, pid: int, threads: Sequence[int]) -> None:
        """Open what is opened next for other threads of a process; one that executes a program is its first then."""
        self._tasks[pid] = tuple(threads)

    def moved(self, pid: int) -> None:
        """A process executes another program: its only thread has its number."""
        self._tasks.pop(pid, None)

    def kept(self, pid: int, binary_id: int) -> set[int]:
        """Return where in a binary's file a process has breakpoints by events."""
        return self._kept.get(pid, {}).get(binary_id, set())

    def _forget_events(self, pid: int) -> None:
        self._by_events.discard(pid)
        self._kept.pop(pid, None)
        self._places.forget(pid)
        for tid in self._tasks.pop(pid, ()):
            self._places.forget(tid)

    def rest(self) -> None:
        """Nobody is held."""
        self._places.release()

    def give_links(self, pid: int) -> list[int]:
        """Give away what is attached to a process, to be removed."""
        return list(chain(*self._fds.pop(pid, {}).values()))

    def attach_sites(self, pid: int, binary: OpenBinary, placed: Sequence[_Placed]) -> None:
        """Attach sites of a binary to a process; returns first, so that no entry goes without its return.

        Raises ProcessLookupError where the process is gone.
        """
        if not placed:
            return
        self._quiet.clear()
        try:
            self._attach_all(pid, binary, placed)
        finally:
            self._quiet.set()

    def _attach_all(self, pid: int, binary: OpenBinary, all_placed: Sequence[_Placed]) -> None:
        for entry, back, placed in _by_programs(all_placed):
            with_return = [p for p in placed if not p[1].site.function.flags & SiteFlag.ENTRY_RESULT]
            self._attach(pid, binary, back, with_return, at_return=True)
            self._attach(pid, binary, entry, placed, at_return=False)
        self.attached += len(all_placed)

    def _attach(self, pid: int, binary: OpenBinary, name: str, placed: list[_Placed], *, at_return: bool) -> None:
        # A perf event's come from whoever shares the memory too, a link's and those of places are not seen twice.
        whose = 0 if self._expected is not None or self._programs.probes.multi else pid << 32
        places = [(_offset(placement, at_return), whose | index) for index, placement in placed]
        if places:
            self._link(pid, binary, name, places, at_return=at_return)

    def _link(
        self, pid: int, binary: OpenBinary, name: str, places: Sequence[tuple[int, int]], *, at_return: bool
    ) -> None:
        """Attach a program to (file offset, cookie) each: by one link, a perf event each, or the places' events."""
        programs = self._programs.of_events if self._expected is not None else self._programs.probes
        program = programs.get(name) if programs is not None else None
        if program is None:
            return
        fds = self._fds.setdefault(pid, {}).setdefault(binary.id, [])
        if self._expected is not None:
            for at, cookie in places:
                number = self._places.number(binary.id, binary.open_path, at, program, cookie, at_return=at_return)
                for tid in self.tasks(pid):
                    with suppress(ProcessLookupError) if tid != pid else nullcontext():
                        fds.append(self._places.open(number, tid, self._expected))
            self._kept.setdefault(pid, {}).setdefault(binary.id, set()).update(at for at, _ in places)
        elif self._programs.probes.multi:
            offsets, cookies = [offset for offset, _ in places], [cookie for _, cookie in places]
            fds.append(bpf.link_uprobes(program, binary.open_path, offsets, cookies, pid, at_return=at_return))
        else:
            for offset, cookie in places:
                fds.extend(self._perf(program, binary.open_path, offset, cookie, pid or -1, at_return))

    def _perf(self, program: int, path: str, offset: int, cookie: int, pid: int, at_return: bool) -> tuple[int, int]:
        event = bpf.open_uprobe_event(path, offset, pid, at_return=at_return)
        try:
            return event, bpf.link_perf_event(program, event, cookie)
        except OSError:
            os.close(event)
            raise

    def attach_hold(self, pid: int, binary: OpenBinary, hold: Hold) -> None:
        """Hold a process each time it comes to this place; with pid EVERY_PROCESS, whatever traced process does."""
        if self._programs.can_hold:
            places = [(hold.file_offset, hold.cookie)]
            self._link(pid, binary, "on_hold", places, at_return=hold.at_return)

    def attach_tree_holds(self, pid: int, binary: OpenBinary, holds: Sequence[Hold]) -> None:
        """Hold a process, and those that it makes from now on, at these places.

        A child is held before it has links of its own, so what follows forks cannot be limited to one process.
        Raises ProcessLookupError where the process is gone, OSError where the kernel refuses.
        """
        if not self._programs.can_hold:
            return
        for hold in holds:
            self._tree.attach(
                pid, binary.id, binary.open_path, hold.file_offset, hold.cookie, at_return=hold.at_return
            )

    def _keep_for_all(self, binary_id: int, fd: int) -> None:
        self._fds.setdefault(EVERY_PROCESS, {}).setdefault(binary_id, []).append(fd)

    def attach_unwinders(self, pid: int, binary: OpenBinary) -> None:
        """Have true return addresses stand on a process's stacks while this binary's unwinders run."""
        for at_return in (False, True):
            places = [(p.file_offset, int(p.moment)) for p in binary.unwinders if p.at_return == at_return]
            if places:
                self._link(pid, binary, "on_unwinding", places, at_return=at_return)

    def attach_watch(self, pid: int, binary: OpenBinary, calls: Sequence[tuple[int, int]]) -> None:
        """Follow what a process does to its executable memory: (file offset behind a system call, its number) each."""
        places = [(offset, number << 8) for offset, number in calls]
        self._link(pid, binary, "on_mapping", places, at_return=False)

    def attach_tracepoints(self) -> None:
        """Watch forks, execs and exits; raises KernelLacks."""
        fds = self._fds.setdefault(EVERY_PROCESS, {}).setdefault(_NO_BINARY, [])
        for program, name in (
            ("on_fork", "sched_process_fork"), ("on_exec", "sched_process_exec"), ("on_exit", "sched_process_exit"),
        ):
            try:
                fds.append(bpf.open_raw_tracepoint(self._programs[program], name))
            except OSError as error:
                raise KernelLacks(f"cannot watch {name}: {error.strerror}") from None

    def detach(self, pid: int) -> None:
        """Close what is attached to a process that ended, but not yet: each close takes the locks that an attach needs
        too, for which someone may be held. Only when many wait, the oldest are closed, one after the other. Events are
        closed soon, which costs little: each costs all others at its place some time."""
        if pid in self._by_events:
            self._forget_events(pid)
            for binary, fds in self._fds.pop(pid, {}).items():
                self._to_close.extend((binary, fd) for fd in fds)
                self._closer.submit(self._close_many, len(fds))
            return
        self._ended.append(self._fds.pop(pid, {}))
        if len(self._ended) > _MOST_ENDED:
            for binary, fds in self._ended.popleft().items():
                for fd in fds:
                    self._to_close.append((binary, fd))
                    self._closer.submit(self._close_next)

    def withdraw(self, binary: OpenBinary) -> None:
        """Take a binary's breakpoints out of every process, and out of whatever maps its file from now on.

        The links of processes that ended too: the kernel keeps one copy of the instruction at each place of a file for
        all of its links, and whoever comes to that place executes the copy.
        """
        fds = list(chain(*(links.pop(binary.id, []) for links in (*self._fds.values(), *self._ended))))
        waiting = []
        with suppress(IndexError):
            while True:
                waiting.append(self._to_close.popleft())
        fds += [*self._places.take(binary.id), *(fd for of, fd in waiting if of == binary.id)]
        self._to_close.extend((of, fd) for of, fd in waiting if of != binary.id)
        closed = self._being_closed
        remove_breakpoints(fds, [closed[1]] if closed is not None and closed[0] == binary.id else [])

    def leave(self, pid: int) -> None:
        """Take all breakpoints out of a process that goes on, and the holds of the tree out of all of it: what was
        inherited goes only with what it was inherited from."""
        everywhere = self._fds.get(EVERY_PROCESS, {})
        shared = [everywhere.pop(binary) for binary in list(everywhere) if binary != _NO_BINARY]
        remove_breakpoints(list(chain(*self._fds.pop(pid, {}).values(), *shared)))
        self._forget_events(pid)

    def _close_next(self) -> None:
        self._quiet.wait(_PATIENCE_SECONDS)
        with suppress(IndexError):  # the end, or a withdrawal, took them all
            binary, fd = self._to_close.popleft()
            self._being_closed = binary, threading.get_native_id()
            _close_quietly(fd)
            self._being_closed = None

    def _close_many(self, count: int) -> None:
        for _ in range(count):
            self._close_next()

    def leave_all(self) -> None:
        """Leave all open, for who closes it when this process has ended."""
        self._places.close()
        self._closer.shutdown(wait=True, cancel_futures=True)
        self._ended.clear()
        self._fds.clear()
        self._to_close.clear()

    def detach_all(self, *, leaves_places: bool = False) -> None:
        """Close everything and wait for it; `leaves_places`: but for the programs at places with events, which are met
        by nobody then: this process is about to end, and another one closes them."""
        self._places.close()
        self._closer.shutdown(wait=False, cancel_futures=True)
        left = list(chain(*(fds for links in (*self._ended, *self._fds.values()) for fds in links.values())))
        if not leaves_places:
            left += self._places.take_all()
        with suppress(IndexError):
            while True:  # one by one: none may be closed twice, since its number may be another's by then
                left.append(self._to_close.popleft()[1])
        with ThreadPoolExecutor(_CLOSERS, thread_name_prefix="detach") as closers:
            closers.map(_close_quietly, left)
        self._ended.clear()
        self._fds.clear()
        self._closer.shutdown(wait=True)


def _by_programs(placed: Sequence[_Placed]) -> tuple[tuple[str, str, list[_Placed]], ...]:
    """Tell the built-in functions, whose programs are made for speed, from those that specs describe."""
    entries = [p for p in placed if p[1].site.function.operation in INTERPRETED]
    wrappers = [p for p in placed if _is_behind_call(p[1])]
    placed = [p for p in placed if p[1].site.function.operation not in INTERPRETED and p not in wrappers]
    built_in = [p for p in placed if p[1].site.function.group == 0]
    described = [p for p in placed if p[1].site.function.group != 0]
    return (
        ("on_interpreter", "", entries), ("on_entry", "on_return", built_in),
        ("on_call", "on_call_return", described), ("on_wrapper", "", wrappers),
    )  # fmt: skip


def _is_behind_call(placement: Placement) -> bool:
    """Tell the places in the library of --preload from those at the entry of a function."""
    function = placement.site.function
    return bool(function.flags & SiteFlag.WRAPPER) and (
        bool(function.flags & SiteFlag.MADE) or function.operation in (Operation.NONE, Operation.UNDO)
    )


def _offset(placement: Placement, at_return: bool) -> int:
    return placement.return_offset if at_return else placement.file_offset


def _close_quietly(fd: int) -> None:
    with suppress(OSError):
        os.close(fd)
