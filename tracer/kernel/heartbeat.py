"""Tells the kernel side that refleak runs: who is held goes on when this stops."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from tracer.kernel.blocked_signals import block_signals

_PERIOD_SECONDS = 0.05
"""HEARTBEAT_NS of bpf/abi.h is fourteen of these: a thread of Python may have to wait for another one's long call."""


class Heartbeat:
    """A thread that writes the time, by the kernel's monotonic clock, into the memory shared with the kernel side.

    It stops with the process, whatever stops that: SIGKILL, SIGSTOP, a machine with no time for it.
    """

    def __init__(self, shared: npt.NDArray[Any]) -> None:
        self._times, self._tracer = shared["heartbeat_ns"], shared["tracer"]
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Beat, before this returns too. The thread has the priority of the caller."""
        self._tracer[0] = os.getpid()
        self._beat()
        self._thread.start()

    def _beat(self) -> None:
        self._times[0] = np.uint64(time.monotonic_ns())

    def _run(self) -> None:
        block_signals()
        while not self._end.wait(_PERIOD_SECONDS):
            self._beat()

    def stop(self) -> None:
        """End the thread, if it was started."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()
