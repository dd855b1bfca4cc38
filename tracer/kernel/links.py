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
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain

from tracer.binaries.open_binaries import OpenBinary
from tracer.errors import KernelLacks
from tracer.kernel import bpf
from tracer.kernel.breakpoints import remove_breakpoints
from tracer.kernel.maps import Maps
from tracer.kernel.place_events import PlaceEvents
from tracer.kernel.process_events import ProcessEvents
from tracer.kernel.programs import Programs
from tracer.kernel.tree_holds import TreeHolds
from tracer.kernel.uprobe_events import UprobeEvents
from tracer.late_dataclasses import dataclass
from tracer.model import records
from tracer.model.operations import COUNTING, INTERPRETED, Operation, Placement, SiteFlag
from tracer.model.records import ControlKind

EVERY_PROCESS = 0
_NO_BINARY = 0
_MOST_ENDED = 32
"""Ended processes whose links wait: each costs the living some 10 ns a hit."""
_Placed = tuple[int, Placement]
_Call = tuple[str, bool, list[tuple[int, int]]]
"""A program, whether it is for returns, and its places: offset in the file and index of the site."""
_Links = dict[int, list[int]]
"""Descriptors by the binary that they are in; 0 for those in none."""
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

    def __init__(self, programs: Programs, events: UprobeEvents, maps: Maps) -> None:
        self._programs = programs
        self._places = PlaceEvents(events)
        self.events = ProcessEvents(programs, self._places, maps)
        self._tree = TreeHolds(self._places, programs.hold_of_tree, self._keep_for_all)
        self._fds: dict[int, _Links] = {}
        self._calls: dict[tuple[int, tuple[int, ...]], list[_Call]] = {}
        """How sites of a binary are attached, worked out once."""
        self._ended: deque[_Links] = deque()
        self._to_close: deque[tuple[int, Sequence[int]]] = deque()
        """By binary, what is closed in one go."""
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

    def put_back(self, pid: int, binary: OpenBinary, places: Iterable[int]) -> None:
        """Put the breakpoints of a process's events in again, at places of a binary, by links, of which nothing counts:
        for one more event the kernel looks for no breakpoint in memory that has an event there, of any run.

        Raises ProcessLookupError where the process is gone, OSError where the kernel refuses.
        """
        self._link(pid, binary, "on_entry", [(place, 0) for place in places], at_return=False)

    def _close_soon(self, pieces: Iterable[tuple[int, Sequence[int]]]) -> None:
        for piece in pieces:
            self._to_close.append(piece)
            self._closer.submit(self._close_next)

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
        key = binary.id, tuple([index for index, _ in all_placed])
        if key not in self._calls:
            self._calls[key] = _calls(all_placed)
        for name, at_return, places in self._calls[key]:
            self._attach(pid, binary, name, places, at_return=at_return)
        self.attached += len(all_placed)

    def _attach(
        self, pid: int, binary: OpenBinary, name: str, places: Sequence[tuple[int, int]], *, at_return: bool
    ) -> None:
        # A perf event's come from whoever shares the memory too, a link's and those of places are not seen twice.
        of_link = 0 if self._programs.probes.multi else pid
        is_counted = self.events.are_opened or self.events.counts(pid)
        whose = (records.OF_PLACE if is_counted else of_link) << 32
        self._link(pid, binary, name, [(at, whose | index) for at, index in places], at_return=at_return)

    def _link(
        self, pid: int, binary: OpenBinary, name: str, places: Sequence[tuple[int, int]], *, at_return: bool
    ) -> None:
        """Attach a program to (file offset, cookie) each: by one link, a perf event each, or the places' events."""
        program = self._programs.probes.get(name)
        if program is None:
            return
        fds = self._fds.setdefault(pid, {}).setdefault(binary.id, [])
        if self.events.are_opened:
            self._places.take_over(binary)
            numbers = self._places.numbers(binary, places, program, at_return=at_return)
            self.events.open(pid, binary.id, [at for at, _ in places], numbers, fds)
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

    def attach_holds(self, pid: int, binary: OpenBinary, holds: Sequence[Hold]) -> None:
        """Hold a process each time it comes to these places; with pid EVERY_PROCESS, whatever traced process does."""
        for at_return in (False, True) if self._programs.can_hold else ():
            if places := [(hold.file_offset, hold.cookie) for hold in holds if hold.at_return == at_return]:
                self._link(pid, binary, "on_hold", places, at_return=at_return)

    def attach_tree_holds(self, pid: int, binary: OpenBinary, holds: Sequence[Hold]) -> None:
        """Hold a process, and those that it makes from now on, at these places.

        A child is held before it has links of its own, so what follows forks cannot be limited to one process.
        Raises ProcessLookupError where the process is gone, OSError where the kernel refuses.
        """
        if not self._programs.can_hold:
            return
        self._places.take_over(binary)
        for hold in holds:
            self._tree.attach(pid, binary, hold.file_offset, hold.cookie, at_return=hold.at_return)

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
        self._places.has_begun = True
        fds = self._fds.setdefault(EVERY_PROCESS, {}).setdefault(_NO_BINARY, [])
        for program, name in (
            ("on_fork", "sched_process_fork"), ("on_exec", "sched_process_exec"), ("on_exit", "sched_process_exit"),
        ):
            try:
                fds.append(bpf.open_raw_tracepoint(self._programs[program], name))
            except OSError as error:
                raise KernelLacks(f"cannot watch {name}: {error.strerror}") from None

    def keep_apart(self, pid: int) -> None:
        """See to it that a child keeps the events that it has inherited."""
        self._places.keep_apart(pid)

    def detach(self, pid: int) -> None:
        """Close what is attached to a process that ended, but not yet: each close takes the locks that an attach needs
        too, for which someone may be held. Only when many wait, the oldest are closed, one after the other. Events are
        closed soon, which costs little: each costs all others at its place some time."""
        if self.events.has(pid):
            self.events.forget(pid)
            self._close_soon(self._fds.pop(pid, {}).items())
            return
        self._places.forget(pid)
        self._ended.append(self._fds.pop(pid, {}))
        if len(self._ended) > _MOST_ENDED:
            self._close_soon((binary, [fd]) for binary, fds in self._ended.popleft().items() for fd in fds)

    def former_of_others(self, binary: OpenBinary, places: Collection[int]) -> set[int]:
        """Return at which places of a binary the kernel may still have what stood there before its file was rewritten,
        since other runs have probes there."""
        return self._places.former_of_others(binary, places)

    def withdraw(self, binary: OpenBinary) -> None:
        """Take a binary's breakpoints out of every process, and out of whatever maps its file from now on.

        The links of processes that ended too: the kernel keeps one copy of the instruction at each place of a file for
        all of its links, and whoever comes to that place executes the copy. It keeps those of events until the end.
        """
        fds = list(chain(*(links.pop(binary.id, []) for links in (*self._fds.values(), *self._ended))))
        waiting = []
        with suppress(IndexError):
            while True:
                waiting.append(self._to_close.popleft())
        fds += [*self._places.retire(binary.id), *(fd for of, some in waiting if of == binary.id for fd in some)]
        self._to_close.extend((of, some) for of, some in waiting if of != binary.id)
        closed = self._being_closed
        remove_breakpoints(fds, [closed[1]] if closed is not None and closed[0] == binary.id else [])

    def leave(self, pid: int) -> None:
        """Take all breakpoints out of a process that goes on, and the holds of the tree out of all of it: what was
        inherited goes only with what it was inherited from."""
        everywhere = self._fds.get(EVERY_PROCESS, {})
        shared = [everywhere.pop(binary) for binary in list(everywhere) if binary != _NO_BINARY]
        remove_breakpoints(list(chain(*self._fds.pop(pid, {}).values(), *shared)))
        self.events.forget(pid)

    def _close_next(self) -> None:
        self._quiet.wait(_PATIENCE_SECONDS)
        with suppress(IndexError):  # the end, or a withdrawal, took them all
            binary, fds = self._to_close.popleft()
            self._being_closed = binary, threading.get_native_id()
            for first, behind in _runs(fds):
                os.closerange(first, behind)  # one call of the kernel, in which other threads run
            self._being_closed = None

    def leave_all(self) -> None:
        """Leave all open, for who closes it when this process has ended."""
        self._closer.shutdown(wait=True, cancel_futures=True)
        self._ended.clear()
        self._fds.clear()
        self._to_close.clear()

    def detach_all(self, *, leaves_places: bool = False) -> None:
        """Close everything and wait for it; `leaves_places`: but for the programs at places with events, which are met
        by nobody then: this process is about to end, and another one closes them."""
        self._closer.shutdown(wait=False, cancel_futures=True)
        left = list(chain(*(fds for links in (*self._ended, *self._fds.values()) for fds in links.values())))
        if not leaves_places:
            left += self._places.take_all()
        with suppress(IndexError):
            while True:  # one by one: none may be closed twice, since its number may be another's by then
                left += self._to_close.popleft()[1]
        with ThreadPoolExecutor(_CLOSERS, thread_name_prefix="detach") as closers:
            closers.map(_close_quietly, left)
        self._ended.clear()
        self._fds.clear()
        self._closer.shutdown(wait=True)


def _calls(placed: Sequence[_Placed]) -> list[_Call]:
    """Return by which programs sites are attached: at returns first, so that no entry goes without its return."""
    found = []
    for entry, back, some in _by_programs(placed):
        with_return = [p for p in some if not p[1].site.function.flags & SiteFlag.ENTRY_RESULT]
        found += [(back, True, _offsets(with_return, at_return=True)), (entry, False, _offsets(some, at_return=False))]
    return [call for call in found if call[2]]


def _offsets(placed: Sequence[_Placed], *, at_return: bool) -> list[tuple[int, int]]:
    return [(p.return_offset if at_return else p.file_offset, index) for index, p in placed]


def _by_programs(placed: Sequence[_Placed]) -> tuple[tuple[str, str, list[_Placed]], ...]:
    """Tell the built-in functions, whose programs are made for speed, from those that specs describe."""
    entries = [p for p in placed if p[1].site.function.operation in INTERPRETED]
    wrappers = [p for p in placed if _is_behind_call(p[1])]
    placed = [p for p in placed if p[1].site.function.operation not in INTERPRETED and p not in wrappers]
    built_in = [p for p in placed if p[1].site.function.group == 0]
    counting = [p for p in built_in if p[1].site.function.operation in COUNTING]
    memory = [p for p in built_in if p[1].site.function.operation not in COUNTING]
    described = [p for p in placed if p[1].site.function.group != 0]
    return (
        ("on_interpreter", "", entries), ("on_entry", "on_return", memory), ("on_reference", "", counting),
        ("on_call", "on_call_return", described), ("on_wrapper", "", wrappers),
    )  # fmt: skip


def _is_behind_call(placement: Placement) -> bool:
    """Tell the places in the library of --preload from those at the entry of a function."""
    function = placement.site.function
    return bool(function.flags & SiteFlag.WRAPPER) and (
        bool(function.flags & SiteFlag.MADE) or function.operation in (Operation.NONE, Operation.UNDO)
    )


def _runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and behind the last of numbers that follow each other; each is given once."""
    ordered = sorted(numbers)
    at = 0
    for index, number in enumerate(ordered, 1):
        if index == len(ordered) or ordered[index] != number + 1:
            yield ordered[at], number + 1
            at = index


def _close_quietly(fd: int) -> None:
    with suppress(OSError):
        os.close(fd)
