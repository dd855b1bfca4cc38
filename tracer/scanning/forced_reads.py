"""Reads of memory that a process may not read itself: /proc/PID/mem asks for no rights of pages.

Where the kernel is built so (CONFIG_PROC_MEM_FORCE_PTRACE, fs/proc/base.c; Debian's 7.2 is), it does that only for the
thread that traces the one whose file it is. So the read is made by a thread that begins to trace one (PTRACE_SEIZE,
which neither stops it nor sends a signal), and ends at once, by which it lets go.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from threading import Thread

import numpy as np
import numpy.typing as npt

from tracer.procfs.process import is_running, thread_ids
from tracer.scanning.stopped_threads import seize

_STEP_SECONDS, _LONGEST_END_SECONDS = 0.0002, 1.0


class ForcedReads:
    """Reads from one process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._file = -1
        self.ranges: Sequence[tuple[int, int]] = ()
        """What may be read so."""
        self.refused = False
        """Whether something was there that could not be read."""

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)

    def read(self, address: int, buffer: npt.NDArray[np.uint64]) -> int:
        """Fill a buffer from an address on; return how many bytes could be read."""
        if self.refused or not any(start <= address < end for start, end in self.ranges):
            return 0
        try:
            if self._file < 0:
                self._file = os.open(f"/proc/{self._pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
            return os.preadv(self._file, [buffer.data.cast("B")], address)
        except OverflowError:
            return 0
        except OSError:  # nothing is there, or the kernel does not permit it
            return self._read_as_tracer(address, buffer)

    def _read_as_tracer(self, address: int, buffer: npt.NDArray[np.uint64]) -> int:
        for tid in thread_ids(self._pid):
            path = f"/proc/{self._pid}/task/{tid}/mem"
            if done := _read(path, address, buffer):  # this thread traces it already: it is stopped
                return done
            tries = _Tries()
            helper = Thread(target=tries.make, args=(tid, path, address, buffer))
            helper.start()
            helper.join()
            if tries.is_tracer:
                _wait_for_end(helper)
                return tries.done
        self.refused = True
        return 0


def _wait_for_end(helper: Thread) -> None:
    """Wait until the kernel has ended a thread, by which it traces nobody: Python's part of it ends before."""
    deadline = time.monotonic() + _LONGEST_END_SECONDS
    while is_running(os.getpid(), helper.native_id or 0) and time.monotonic() < deadline:
        time.sleep(_STEP_SECONDS)


class _Tries:
    is_tracer = False
    done = 0

    def make(self, tid: int, path: str, address: int, buffer: npt.NDArray[np.uint64]) -> None:
        self.is_tracer = seize(tid)
        if self.is_tracer:
            self.done = _read(path, address, buffer)


def _read(path: str, address: int, buffer: npt.NDArray[np.uint64]) -> int:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return os.preadv(file, [buffer.data.cast("B")], address)
    except OSError:
        return 0
    finally:
        os.close(file)
