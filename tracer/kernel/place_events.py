"""Uprobe events of tracefs with a program on each, and perf events on them, which keep breakpoints in processes.

The program hangs on a perf event of refleak's own. The kernel runs it for whoever comes to the place in memory that a
perf event was opened for: each run's program for those of all runs that have this event. Where the breakpoints of a
process are there already, or come when it maps the file, such an event costs no walk over all that map the file, nor a
lock of their memory (trace_uprobe_filter_add in kernel/trace/trace_uprobe.c): that is what a link costs.

All events are made, opened and closed under one lock of the kernel's (event_mutex), and whoever takes the last one away
from a place waits, with this lock, until no program of any probe runs: none either of those that hold a thread for this
process. So refleak's runs agree on who closes when: tracer.kernel.event_turns.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from enum import Enum, auto
from functools import cache
from pathlib import Path

from tracer.binaries.open_binaries import OpenBinary
from tracer.kernel import bpf
from tracer.kernel.uprobe_events import UprobeEvents

_Place = tuple[int, int, bool, int, int]
"""Binary, offset in its file, whether at returns, program and cookie."""

_PATIENCE_SECONDS = 0.2
"""Somebody may be held meanwhile."""
_REST_SECONDS = 1.0
_MOST_FILES = 1 << 14
"""As many, with lower numbers, are taken to keep breakpoints."""
BLOCK = 256
_MOST_RETIRED = 2048
_OF_LEADER = errno.EINVAL, errno.ENODEV
"""What the kernel says of a group whose leader is gone; the second since 6.15, of one that is dead (perf_event_open in
kernel/events/core.c)."""
_STAYING = ("/", "/usr", "/home", "/opt", "/root", "/srv", "/tmp", "/var")


class Breakpoints(Enum):
    """What a process has of the breakpoints that an event is opened for."""

    MISSING = auto()
    """It maps the file, and has none yet."""
    THERE = auto()
    """It has them since it was forked."""
    TO_COME = auto()
    """It is about to execute a program that maps the file."""


class PlaceEvents:
    """The places of a trace that have an event, and the events of processes on them."""

    def __init__(self, events: UprobeEvents) -> None:
        self._events = events
        self._numbers: dict[_Place, int] = {}
        self._known: dict[tuple[int, int, bool, tuple[tuple[int, int], ...]], list[int]] = {}
        """Of places that were asked for together."""
        self._own: dict[int, list[int]] = {}
        """By binary: its file, and what is open on its places."""
        self._lowest: dict[int, int] = {}
        """By binary: from which number on its files are."""
        self._blocks = 0
        self._of_others: dict[int, dict[tuple[int, bool], list[tuple[int, int]]]] = {}
        """By binary and place: the numbers and own descriptors of events that other runs have made."""
        self.has_begun = False
        """Whether somebody may be held, and wait."""
        self._retired: list[int] = []
        """What is open on places of files that were rewritten."""
        self._leaders: dict[int, int] = {}
        self._claimed_at = time.monotonic()

    @property
    def can_be_had(self) -> bool:
        return self._events.can_be_had

    @property
    def can_be_added(self) -> bool:
        """Whether processes may get events: they can be had, and not too many of other runs wait to be closed."""
        return self._events.can_be_added

    def claim(self) -> None:
        """See to it that no other run takes the kernel's lock for long from now on. Where one has it just then, go on
        in a moment all the same: whatever else could be attached takes this lock too."""
        self._claimed_at = time.monotonic()
        self._events.turns.claim(_PATIENCE_SECONDS)

    def release(self) -> None:
        """Nobody is held: if that is so for some time, let other runs close theirs."""
        if time.monotonic() - self._claimed_at > _REST_SECONDS:
            self._events.turns.release()

    def take_over(self, binary: OpenBinary) -> None:
        """Open the events that other runs have made in a binary, once: they need not be made again then, and to close
        them costs those runs nothing."""
        if binary.id in self._of_others or binary.version is None:
            return
        found = self._of_others[binary.id] = {}
        for name, place in self._events.of_others(binary.version).items():
            if not self._events.turns.claim(_PATIENCE_SECONDS):
                return
            with suppress(OSError):
                number = self._events.number_of(name)
                fd = self._open_own(binary, number)
                if self._events.number_of(name) == number:  # else it was removed, and the number another one's
                    self._events.others -= 1
                    found.setdefault((place.file_offset, place.at_return), []).append((number, fd))

    def numbers(
        self, binary: OpenBinary, places: Sequence[tuple[int, int]], program: int, *, at_return: bool
    ) -> list[int]:
        """Return the numbers of the events of some places (file offset, cookie), as `number` does."""
        key = binary.id, program, at_return, tuple(places)
        if key not in self._known:
            found = [self.number(binary, at, program, cookie, at_return=at_return) for at, cookie in places]
            self._known[key] = found
        return self._known[key]

    def number(self, binary: OpenBinary, file_offset: int, program: int, cookie: int, *, at_return: bool) -> int:
        """Return the number of a place's event; the first time it is made, and the program put on it.

        Raises OSError where the kernel refuses, FileNotFoundError where tracefs is not to be had.
        """
        if not self.can_be_had:
            raise FileNotFoundError(errno.ENOENT, "no tracefs")
        place = binary.id, file_offset, at_return, program, cookie
        if place not in self._numbers:
            self._numbers[place] = self._taken(binary, place) or self._made(binary, place)
        return self._numbers[place]

    def _open_own(self, binary: OpenBinary, number: int) -> int:
        """Open an event of this process's on a place of a binary, beside the binary's file, by which who closes them
        sees it change; return its descriptor."""
        lowest = self._lowest.get(binary.id)
        if lowest is None:
            lowest = lowest_number()
            if binary.version is not None and binary.version.device in _devices_that_stay():
                lowest = lowest_number(stays=True) + BLOCK * self._blocks
                self._blocks += 1
            self._lowest[binary.id] = lowest
            self._own[binary.id] = [_moved_up(os.dup(binary.fd), lowest)]
        fd = _moved_up(bpf.open_trace_event(number, 0), lowest)
        self._own[binary.id].append(fd)
        return fd

    def _made(self, binary: OpenBinary, place: _Place) -> int:
        _, file_offset, at_return, program, cookie = place
        number = self._events.add(
            binary.open_path, file_offset, at_return=at_return, version=binary.version, code=binary.code_at(file_offset)
        )
        fd = self._open_own(binary, number)
        self._own[binary.id].append(bpf.link_perf_event(program, fd, cookie))
        return number

    def _taken(self, binary: OpenBinary, place: _Place) -> int | None:
        """Return the number of an event that another run has made, and put the program on it; None: there is none."""
        _, file_offset, at_return, program, cookie = place
        known = self._of_others.get(binary.id, {}).get((file_offset, at_return), [])
        while known:
            number, fd = known.pop()
            with suppress(OSError):  # too many runs have programs on it
                self._own[binary.id].append(bpf.link_perf_event(program, fd, cookie))
                return number
        return None

    def open(self, numbers: Sequence[int], tid: int, breakpoints: Breakpoints, fds: list[int]) -> None:
        """Open events for a thread's memory, and for that of the programs that it executes, and put their descriptors
        into `fds`, which has those that were opened where one could not be.

        Raises ProcessLookupError where the thread is gone, OSError where the kernel refuses.
        """
        if breakpoints == Breakpoints.MISSING:
            bpf.open_trace_events(numbers, tid, fds, enables=False, group=-1)
            return
        had = len(fds)
        try:
            bpf.open_trace_events(numbers, tid, fds, enables=True, group=self._leader(tid))
        except OSError as error:
            if error.errno not in _OF_LEADER:
                raise
        else:
            return
        self.forget(tid)  # an exec took it away, as of a program with other rights
        bpf.open_trace_events(numbers[len(fds) - had :], tid, fds, enables=True, group=self._leader(tid))

    def _leader(self, tid: int) -> int:
        """Return an event that is never switched on, nor are those of its group: what an exec enables is not scheduled
        with the thread, then."""
        if tid not in self._leaders:
            self._leaders[tid] = bpf.open_dummy_event(tid)
        return self._leaders[tid]

    def keep_apart(self, tid: int) -> None:
        """Give a thread an event that its children do not inherit. Else the kernel may exchange the events of two
        threads where one has just what the other has (perf_event_context_sched_out in kernel/events/core.c), and the
        end of one takes the breakpoints of the other away."""
        with suppress(OSError):
            self._leader(tid)

    def forget(self, tid: int) -> None:
        """Close what a thread's events had in common."""
        if (leader := self._leaders.pop(tid, None)) is not None:
            with suppress(OSError):
                os.close(leader)

    def former_of_others(self, binary: OpenBinary, places: Collection[int]) -> set[int]:
        """Return at which places of a binary other runs have events still that they made before its file was
        rewritten, where other code was there."""
        if binary.version is None or not self.can_be_had:
            return set()
        return self._events.former_of_others(binary.version, places, binary.code_at, waits=not self.has_begun)

    def retire(self, binary_id: int) -> list[int]:
        """Forget a binary's places: its file was rewritten. They stay open until the trace ends: to close the last
        event of a place takes until nobody is held, and whoever opens one waits for that. Give away those that are too
        many for that, to be closed."""
        self._numbers = {place: number for place, number in self._numbers.items() if place[0] != binary_id}
        self._known = {places: numbers for places, numbers in self._known.items() if places[0] != binary_id}
        self._lowest.pop(binary_id, None)
        own = self._own.pop(binary_id, [])
        if len(self._retired) + len(own) > _MOST_RETIRED:
            return own
        lowest = lowest_number()  # no run takes them over
        self._retired += [_moved_up(fd, lowest) for fd in own]
        return []

    def take_all(self) -> list[int]:
        """Give away all descriptors, to be closed."""
        fds = [*self._leaders.values(), *self._retired, *(fd for own in self._own.values() for fd in own)]
        self._leaders.clear()
        self._retired.clear()
        self._own.clear()
        self._lowest.clear()
        self._numbers.clear()
        self._known.clear()
        return fds


def lowest_number(*, stays: bool = False) -> int:
    """Return from which number on files are the events that had programs, and the binaries that they are in. By that
    who closes all knows them from those that keep breakpoints: to close one takes the kernel some 80 ms, unless another
    run has it too. `stays`: from which on those are that are kept for the next run for a while, in a block of BLOCK
    numbers for each binary."""
    first = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2, _MOST_FILES)
    return first + first // 2 if stays else first


def _moved_up(fd: int, lowest: int) -> int:
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, lowest)
    except OSError:
        return os.dup(fd)
    finally:
        os.close(fd)


@cache
def _devices_that_stay() -> frozenset[int]:
    """Return the file systems that nobody takes away while the system runs: an event keeps one from being unmounted."""
    devices = set()
    for place in _STAYING:
        with suppress(OSError):
            devices.add(Path(place).stat().st_dev)
    return frozenset(devices)
