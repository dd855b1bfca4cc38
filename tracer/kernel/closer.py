"""A small process that closes refleak's links, many at a time, where refleak cannot or need not wait for that: when it
was killed, or has ended before.

The kernel closes the files of a process that dies one after the other, and each link waits some 40 ms or more for
readers: a minute where hundreds were open. This process shares the table of open files (CLONE_FILES, clone(2)), so that
they stay open when refleak dies, and closes them in some threads. Then it removes the run's names from tracefs.
"""

from __future__ import annotations

import ctypes
import math
import os
import select
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from stat import S_ISREG

from tracer.kernel.blocked_signals import block_signals, signals_later
from tracer.kernel.place_events import BLOCK, lowest_number
from tracer.kernel.uprobe_events import UprobeEvents

_NR_CLONE = 56
_CLONE_FILES = 0x400
_LINKS = ("anon_inode:bpf_link", "anon_inode:bpf-link")
_EVENT = "anon_inode:[perf_event]"
"""What /proc/PID/fd shows for what takes its time to close."""
_AT_ONCE = 16
"""More are sooner done, but each takes a lock that a fork of the target waits for in the same queue."""
_PATIENCE_SECONDS = 60.0
"""So long may the kernel take to let go of the events in tracefs: nobody waits for this process."""
_WAY_SECONDS = 600.0
"""So long in all, and no longer, other runs that use events are given the way."""
_PAUSE_SECONDS, _LONG_PAUSE_SECONDS = 0.005, 1.0
"""Between two turns, for those who wait to begin; and where who needs the lock was given the way for long enough."""

_TRIES, _ANSWER_SECONDS, _LARGE = 20, 0.5, 5000
"""So often is a copy made where other threads run, and so long may it take to answer. What is too large for Python's
own allocator shows whether another thread was in malloc."""
_NEXT_RUN_SECONDS, _LOOK_SECONDS = 5.0, 0.05
"""So long are events kept for the next run, and so often is it looked whether their files are what they were."""


class Closer:
    """Started as early as can be: the copy has only the thread that asks for it, and whatever others have locked."""

    def __init__(self, events: UprobeEvents) -> None:
        self._handle = os.pidfd_open(os.getpid())  # here: the copy's files are this process's own
        self._pid = -1
        self._start(events)
        left = _TRIES if _has_threads() else 0
        while left and self._pid > 0 and not self._answers():
            self._kill()
            left -= 1
            time.sleep(_PAUSE_SECONDS)  # it met a lock of another thread's
            self._start(events)
        if self._pid > 0:
            events.are_outlived_by(os.getpid(), self._pid)

    def _start(self, events: UprobeEvents) -> None:
        """No interrupt comes between the calls that fork: it would leave locks taken that the end of Python waits for
        (concurrent.futures), or be handled in the copy."""
        tracer, clone = os.getpid(), ctypes.PyDLL(None).syscall
        self._answer = os.eventfd(0, os.EFD_CLOEXEC)
        with signals_later():
            ctypes.pythonapi.PyOS_BeforeFork()
            pid: int = clone(_NR_CLONE, _CLONE_FILES | signal.SIGCHLD, 0, 0, 0, 0)
            if pid == 0:
                ctypes.pythonapi.PyOS_AfterFork_Child()
                events.are_outlived_by(tracer, os.getpid())
                _work(tracer, self._handle, events, self._answer)
            ctypes.pythonapi.PyOS_AfterFork_Parent()
            self._pid = pid

    def _answers(self) -> bool:
        """Wait until the copy has run for a moment; tell whether it does."""
        return bool(select.select([self._answer], [], [], _ANSWER_SECONDS)[0])

    def _kill(self) -> None:
        with suppress(ProcessLookupError, ChildProcessError):  # where this process ignores its children's ends
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        self._pid = -1
        os.close(self._answer)

    @property
    def is_ready(self) -> bool:
        """Whether it waits for this process to end, and outlives it: the first one of a pid namespace takes all of that
        along (pid_namespaces(7))."""
        try:
            return self._pid > 0 and os.getpid() != 1 and os.waitpid(self._pid, os.WNOHANG) == (0, 0)
        except ChildProcessError:  # where this process ignores its children's ends
            return False

    def stop(self) -> None:
        """End it: nothing is left to close."""
        if self._pid > 0:
            self._kill()
            os.close(self._handle)


def _has_threads() -> bool:
    return len(list(Path("/proc/self/task").iterdir())) > 1


def _work(tracer: int, handle: int, events: UprobeEvents, answer: int) -> None:
    """Never return: nothing of the trace may run in the copy, nor close a file that is refleak's."""
    try:
        block_signals()
        os.setsid()
        bytearray(_LARGE)
        threading.Thread(target=bytearray, args=(_LARGE,)).start()
        os.eventfd_write(answer, 1)
        _wait_for_end(tracer, handle)
        close_all(events)
        if events.are_left:
            with events.turns.queue(math.inf):
                is_done = events.remove_all()
            if not is_done:
                events.remove_all(_PATIENCE_SECONDS)
    finally:
        os._exit(0)


def _wait_for_end(tracer: int, handle: int) -> None:
    if os.getppid() == tracer:
        end = select.poll()
        end.register(handle, select.POLLIN)
        end.poll()


def close_all(events: UprobeEvents) -> None:
    """Close every file but those of `events`: first what somebody may wait for the end of, as a terminal or a pipe;
    then links and programs, then perf events that keep breakpoints; and at last, in turns with other runs, those that
    had the programs (tracer.kernel.place_events), when the next run had time to take them over."""
    events.turns.give_up()
    links, perf_events, files, first = [], [], [], lowest_number()
    for fd in sorted(int(place.name) for place in list(Path("/proc/self/fd").iterdir())):
        with suppress(OSError):
            if fd in events.descriptors:
                continue
            what = str(Path(f"/proc/self/fd/{fd}").readlink())
            if what in _LINKS:
                links.append(fd)
            elif what == _EVENT:
                perf_events.append(fd)
            elif fd >= first and S_ISREG(os.fstat(fd).st_mode):
                files.append(fd)
            else:
                os.close(fd)
    with ThreadPoolExecutor(_AT_ONCE) as closers:
        closers.map(os.close, links)
        closers.map(os.close, [fd for fd in perf_events if fd < first])
    kept = lowest_number(stays=True)
    deadline = time.monotonic() + _WAY_SECONDS
    if at_once := [fd for fd in perf_events if first <= fd < kept]:
        with events.turns.queue(math.inf):
            _close_in_turns(events, at_once, deadline)
    for fd in (fd for fd in files if fd < kept):
        os.close(fd)
    blocks: dict[int, list[int]] = {}
    for fd in (fd for fd in perf_events if fd >= kept):
        blocks.setdefault((fd - kept) // BLOCK, []).append(fd)
    _close_later(events, blocks, {(fd - kept) // BLOCK: fd for fd in files if fd >= kept}, deadline)


def _close_in_turns(events: UprobeEvents, fds: Sequence[int], deadline: float) -> None:
    """Close events when no other run needs the kernel's lock, for which they wait until then; after that one a second
    while another needs it."""
    for fd in fds:
        with events.turns.turn(deadline) as is_needed_by_none, suppress(OSError):
            os.close(fd)
        time.sleep(_PAUSE_SECONDS if is_needed_by_none else _LONG_PAUSE_SECONDS)


def _close_later(events: UprobeEvents, blocks: dict[int, list[int]], files: dict[int, int], deadline: float) -> None:
    """Close events when the next run had time to take them over; those of a file that has changed or is gone at once:
    who maps what it holds now must not meet what the kernel keeps of what it held. `blocks`, `files`: by binary."""
    kept_until = time.monotonic() + _NEXT_RUN_SECONDS
    before = {block: _state(fd) for block, fd in files.items()}

    def is_changed(block: int) -> bool:
        now = _state(files[block]) if block in files else None
        return now is None or now != before[block] or not now[0]

    while blocks:
        for block in filter(is_changed, list(blocks)):
            _close_in_turns(events, blocks.pop(block), deadline)
        is_over = time.monotonic() >= kept_until
        with events.turns.queue(time.monotonic() + _LOOK_SECONDS) if is_over else nullcontext(False) as is_next:
            while is_next and blocks:
                block = next(filter(is_changed, blocks), next(iter(blocks)))
                _close_in_turns(events, blocks.pop(block), deadline)
        time.sleep(_LOOK_SECONDS)


def _state(fd: int) -> tuple[int, int, int]:
    status = os.fstat(fd)
    return status.st_nlink, status.st_size, status.st_mtime_ns
