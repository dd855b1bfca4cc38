"""A forked copy of refleak that analyses what is known so far, while the trace goes on.

Neither the target nor the trace waits for it: the copy has what was counted up to the fork, reads the kernel's maps
itself, and never touches the rings, which are the trace's. It dies with refleak, so that no probe outlives the trace
by it.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tracer.capture.assembly import take_snapshot
from tracer.capture.session import Session
from tracer.errors import RefleakError
from tracer.kernel.forked_copy import begin_copy
from tracer.model.snapshot import Records, Snapshot

Job = Callable[[Snapshot, Any], Any]
"""From a snapshot and what the job before returned (None at first) to what the next is given; it runs in the copy."""
_PATIENCE_SECONDS = 20.0
_MAPS_SECONDS = 4.0
"""So long may processes stand until the copy has read their blocks."""


class Analyst:
    """One copy at a time. What a job returns is kept as bytes, which only the next copy reads, or `result`.

    `complain` is called in the copy, with what went wrong there.
    """

    def __init__(self, complain: Callable[[str], None] = lambda _: None) -> None:
        self._pid = 0
        self._complain = complain
        self._kept = os.memfd_create("refleak-analyst")
        self._growing = -1

    @property
    def busy(self) -> bool:
        """Tell whether a job is under way."""
        return self._pid != 0 and not self._ended(os.WNOHANG)

    def start(self, session: Session, job: Job, *, looks: bool = False) -> None:
        """Fork; the copy runs `job`. Only while none is busy. `looks`: at what is lost, for which all processes are
        stopped until their memory and the kernel side's maps are read."""
        self._growing = os.memfd_create("refleak-analyst")
        if looks:
            session.look_into(lambda now_ns: self._fork_and_wait(session, job, now_ns))
            return
        until_ns = session.clock.duration_ns
        session.drain()
        self._fork(session, job, until_ns)

    def _fork_and_wait(self, session: Session, job: Job, until_ns: int) -> None:
        """Fork, and return when the copy has read the maps, or has taken too long for it; then its pipe is closed."""
        told, tells = os.pipe2(os.O_CLOEXEC)
        self._fork(session, job, until_ns, tells)
        os.close(tells)
        deadline = time.monotonic() + _MAPS_SECONDS
        while time.monotonic() < deadline and not select.select([told], [], [], 0.001)[0]:
            session.serve()
        os.close(told)

    def _fork(self, session: Session, job: Job, until_ns: int, tells: int | None = None) -> None:
        tracer = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            self._work(session, job, until_ns, tracer, tells)

    def _work(self, session: Session, job: Job, until_ns: int, tracer: int, tells: int | None) -> None:
        """Never return: nothing of the trace may run in the copy."""
        status = 1
        try:
            if not begin_copy(tracer):
                return
            on_read = partial(_tell, session, tells) if tells is not None else None
            if on_read is None:
                os.nice(40)
            snapshot = _until(take_snapshot(session, running=True, drain=False, on_read=on_read), until_ns)
            with open(self._growing, "wb", closefd=False) as file:
                pickle.dump(job(snapshot, self.result()), file, pickle.HIGHEST_PROTOCOL)
            status = 0
        except RefleakError as error:
            self._complain(str(error))
        except OSError as error:
            self._complain(f"what is outstanding so far cannot be told: {error}")
        finally:
            os._exit(status)

    def result(self) -> Any:
        """Return the result of the last job that succeeded, or None if none has."""
        with open(self._kept, "rb", closefd=False) as file:
            file.seek(0)
            return pickle.load(file) if os.fstat(self._kept).st_size else None

    def _ended(self, options: int) -> bool:
        pid, status = os.waitpid(self._pid, options)
        if not pid:
            return False
        self._pid = 0
        wanted, other = (self._growing, self._kept) if status == 0 else (self._kept, self._growing)
        os.close(other)
        self._kept, self._growing = wanted, -1
        return True

    def stop(self, *, at_once: bool = False) -> None:
        """Wait a while for the job to end, else end it. Its copy holds the probes too: do it before they are closed."""
        deadline = time.monotonic() + (0 if at_once else _PATIENCE_SECONDS)
        while self.busy:
            if time.monotonic() >= deadline:
                os.kill(self._pid, signal.SIGKILL)
                self._ended(0)
                return
            time.sleep(0.01)


def _tell(session: Session, tells: int) -> None:
    """Have those that stand let go, if they still do: from now on nobody waits for this process."""
    reason = None
    try:
        os.write(tells, b"\0")
    except BrokenPipeError:
        reason = "reading its blocks took too long"
    os.close(tells)
    session.endings.were_let_go(reason)
    os.nice(40)


def _until(snapshot: Snapshot, until_ns: int) -> Snapshot:
    """Leave out what came after the fork: its stacks are not known."""

    def early(records: Records) -> Records:
        return records[records["time_ns"].astype(np.int64) <= until_ns]

    return replace(snapshot, allocations=early(snapshot.allocations), objects=early(snapshot.objects))
