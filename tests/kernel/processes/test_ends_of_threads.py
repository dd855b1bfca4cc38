"""Ends of threads, as the kernel side sees them.

A killed refleak holds nobody, though one of its threads may be waiting in the kernel for who is held. A process whose
first thread ends goes on without it only where the others do not end too.
"""

from __future__ import annotations

import ctypes
import os
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
from tracer.kernel.rings import Ring
from tracer.model import records
from tracer.model.records import ControlKind, ProcessState

SEIZE, LET_GO, STOP_AT_EXIT = 0x4206, 17, 0x40
TWO_THREADS = """
import ctypes, os, sys, threading, time
waits = threading.Thread(target=time.sleep, args=(600,))
waits.start()
print(waits.native_id, flush=True)
if sys.stdin.readline() == "all\\n":
    os._exit(0)
ctypes.CDLL(None).syscall(60, 0)
"""
"""Its first thread ends, or all of it does."""


def ptrace(request: int, tid: int, options: int = 0) -> None:
    if ctypes.CDLL(None, use_errno=True).ptrace(request, ctypes.c_long(tid), None, ctypes.c_void_p(options)):
        raise OSError(ctypes.get_errno(), "ptrace")


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Maps]:
    """The maps of the program that looks at the ends of threads."""
    cache = tmp_path_factory.mktemp("cache")
    with closing(Maps.create(Limits(objects=1 << 10, stacks=1 << 10))) as maps:
        programs = load_programs(maps, known_offsets(cache), cache, multi=has_uprobe_multi())
        with closing(programs):
            link = bpf.open_raw_tracepoint(programs["on_exit"], "sched_process_exit")
            try:
                yield maps
            finally:
                os.close(link)


@pytest.fixture
def shared(watched: Maps) -> np.ndarray:
    return watched.view("SHARED", records.SHARED, 1)


@contextmanager
def process_with_a_thread_that_stays() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Its thread stops when it is about to end, and counts as alive: as one does that the kernel lets not go."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", TWO_THREADS], stdin=pipe, stdout=pipe, bufsize=0) as process:
        assert process.stdout is not None
        thread = int(process.stdout.readline())
        ptrace(SEIZE, thread, STOP_AT_EXIT)
        try:
            yield process, thread
        finally:
            process.kill()
            os.waitpid(thread, 0x40000000)  # __WALL: it has come to its stop
            ptrace(LET_GO, thread)


def state_of(task: Path) -> str:
    return (task / "stat").read_text().rpartition(")")[2].split()[0]


def test_the_first_thread_that_ends_releases_all(shared: np.ndarray) -> None:
    with process_with_a_thread_that_stays() as (process, thread):
        tasks = Path(f"/proc/{process.pid}/task")
        shared["tracer"], shared["armed"] = process.pid, 1
        process.kill()
        wait_for(lambda: state_of(tasks / str(process.pid)) == "Z", "the first thread's end")
        wait_for(lambda: state_of(tasks / str(thread)) == "t", "the other one to wait before its end")
        assert shared["armed"][0] == 0


def test_a_thread_that_ends_by_itself_releases_nobody(shared: np.ndarray) -> None:
    code = TWO_THREADS.replace("600", "0")
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        shared["tracer"], shared["armed"] = process.pid, 1
        thread = Path(f"/proc/{process.pid}/task/{int(process.stdout.readline())}")
        wait_for(lambda: not thread.exists(), "the thread's end")
        assert shared["armed"][0] == 1
        process.kill()
        process.wait()
        assert shared["armed"][0] == 0


@pytest.mark.parametrize(("ends", "told"), [(b"all\n", []), (b"first\n", [ControlKind.THREAD_ENDED])])
def test_a_process_goes_on_without_its_first_thread(watched: Maps, ends: bytes, told: list[ControlKind]) -> None:
    ring = Ring(watched.fds["CONTROL"], watched.entries["CONTROL"])
    with closing(ring), process_with_a_thread_that_stays() as (process, _):
        traced = np.zeros(1, records.PROCESS)
        traced["space"], traced["state"] = process.pid, int(ProcessState.TRACED)
        bpf.update_element(watched.fds["PROCESSES"], process.pid.to_bytes(4, "little"), traced.tobytes())
        assert process.stdin is not None
        process.stdin.write(ends)
        first = Path(f"/proc/{process.pid}/task/{process.pid}")
        wait_for(lambda: state_of(first) == "Z", "the first thread's end")
        found = ring.read_records(records.CONTROL)
        assert found["kind"][found["pid"] == process.pid].tolist() == told
