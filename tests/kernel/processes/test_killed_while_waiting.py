"""A killed refleak holds nobody, though one of its threads may be waiting in the kernel for who is held."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
from live_refleak import wait_for

from tracer.kernel import bpf
from tracer.kernel.known_offsets import known_offsets
from tracer.kernel.maps import Limits, Maps
from tracer.kernel.programs import has_uprobe_multi, load_programs
from tracer.model import records

SEIZE, LET_GO, STOP_AT_EXIT = 0x4206, 17, 0x40
TWO_THREADS = """
import threading, time
waits = threading.Thread(target=time.sleep, args=(600,))
waits.start()
print(waits.native_id, flush=True)
waits.join()
"""


def ptrace(request: int, tid: int, options: int = 0) -> None:
    if ctypes.CDLL(None, use_errno=True).ptrace(request, ctypes.c_long(tid), None, ctypes.c_void_p(options)):
        raise OSError(ctypes.get_errno(), "ptrace")


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[np.ndarray]:
    """The page of both sides, with the program that looks at the ends of threads."""
    maps = Maps.create(Limits(objects=1 << 10, stacks=1 << 10))
    with closing(maps):
        programs = load_programs(maps, known_offsets(tmp_path), tmp_path, multi=has_uprobe_multi())
        with closing(programs):
            link = bpf.open_raw_tracepoint(programs["on_exit"], "sched_process_exit")
            try:
                yield maps.view("SHARED", records.SHARED, 1)
            finally:
                os.close(link)


@contextmanager
def process_with_a_thread_that_stays() -> Iterator[tuple[int, int]]:
    """Its thread stops when it is about to end, and counts as alive: as one does that the kernel lets not go."""
    with subprocess.Popen([sys.executable, "-c", TWO_THREADS], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        thread = int(process.stdout.readline())
        ptrace(SEIZE, thread, STOP_AT_EXIT)
        try:
            yield process.pid, thread
        finally:
            process.kill()
            os.waitpid(thread, 0x40000000)  # __WALL: it has come to its stop
            ptrace(LET_GO, thread)


def state_of(task: Path) -> str:
    return (task / "stat").read_text().rpartition(")")[2].split()[0]


def test_the_first_thread_that_ends_releases_all(shared: np.ndarray) -> None:
    with process_with_a_thread_that_stays() as (pid, thread):
        tasks = Path(f"/proc/{pid}/task")
        shared["tracer"], shared["armed"] = pid, 1
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: state_of(tasks / str(pid)) == "Z", "the first thread's end")
        wait_for(lambda: state_of(tasks / str(thread)) == "t", "the other one to wait before its end")
        assert shared["armed"][0] == 0


def test_a_thread_that_ends_by_itself_releases_nobody(shared: np.ndarray) -> None:
    code = TWO_THREADS.replace("600", "0") + "time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        shared["tracer"], shared["armed"] = process.pid, 1
        thread = Path(f"/proc/{process.pid}/task/{int(process.stdout.readline())}")
        wait_for(lambda: not thread.exists(), "the thread's end")
        assert shared["armed"][0] == 1
        process.kill()
        process.wait()
        assert shared["armed"][0] == 0
