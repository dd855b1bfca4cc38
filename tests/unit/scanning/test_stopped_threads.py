"""Threads of another process are stopped, and let go of, whatever they do meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from built_program import build

from tracer.capture.launch import Launched, launch
from tracer.procfs.process import thread_ids
from tracer.scanning.stopped_threads import (
    _INTERRUPT,
    _SEIZE,
    NotStopped,
    _request,
    let_go,
    stack_pointer,
    stopped_threads,
)

WAITS = """
import threading, time
for _ in range(3):
    threading.Thread(target=time.sleep, args=(99,), daemon=True).start()
print('ready', flush=True)
input()
"""


def started() -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", WAITS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


@pytest.mark.skipif(os.geteuid() != 0, reason="ptrace of another process needs root here")
def test_all_but_one_are_stopped_and_go_on() -> None:
    left: set[int] = set()
    with started() as process:
        with stopped_threads(process.pid, process.pid, left) as registers:
            assert set(registers) == set(thread_ids(process.pid)) - {process.pid}
            assert len(registers) == 3
            assert all(stack_pointer(words) for words in registers.values())
        assert left == set()
        process.communicate(b"\n", timeout=60)
        assert process.returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="ptrace of another process needs root here")
def test_a_process_that_dies_meanwhile_is_gone_afterwards() -> None:
    """A thread that died while it was stopped would be in the way of its process's end."""
    left: set[int] = set()
    with started() as process:
        with stopped_threads(process.pid, process.pid, left):
            process.kill()
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            let_go(left)
        assert process.returncode == -9
        assert left == set()


@pytest.mark.skipif(os.geteuid() != 0, reason="ptrace of another process needs root here")
def test_one_that_is_traced_already() -> None:
    left: set[int] = set()
    with started() as process:
        with (
            stopped_threads(process.pid, process.pid, left),
            pytest.raises(NotStopped, match="another process traces it"),
            stopped_threads(process.pid, process.pid, left),
        ):
            pass
        process.kill()
        while process.poll() is None:
            let_go(left)


def launched() -> Launched:
    child = launch([sys.executable, "-c", "import time; time.sleep(99)"], None)
    child.release()
    return child


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.skipif(os.geteuid() != 0, reason="ptrace of another process needs root here")
def test_who_launched_it_does_not_take_a_stop_for_its_end() -> None:
    left: set[int] = set()
    child = launched()
    assert _request(_SEIZE, child.pid)
    assert _request(_INTERRUPT, child.pid)
    wait_until(lambda: state(child.pid) == "t")
    left.add(child.pid)
    assert child.poll() is None
    let_go(left)
    assert left == set()
    assert state(child.pid) in "RS"
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait() == signal.SIGKILL


@pytest.mark.skipif(os.geteuid() != 0, reason="ptrace of another process needs root here")
def test_its_end_is_left_for_who_launched_it() -> None:
    left: set[int] = set()
    child = launched()
    with stopped_threads(child.pid, 0, left):
        os.kill(child.pid, signal.SIGKILL)
        wait_until(lambda: state(child.pid) == "Z")
    let_go(left)
    assert left == set()
    assert child.poll() == signal.SIGKILL


WAITS_FOR_A_CHILD = """
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	char byte;

	puts("ready");
	fflush(stdout);
	if (!vfork()) {
		read(0, &byte, 1);
		_exit(0);
	}
	read(0, &byte, 1);
	return 0;
}
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="ptrace of another process needs root here")
def test_one_that_waits_in_the_kernel_is_served(tmp_path: Path) -> None:
    """The parent of a vfork() does not stop until its child has ended, as one that is held does not until it is
    answered."""
    left: set[int] = set()
    program = build(tmp_path, WAITS_FOR_A_CHILD)
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        wait_until(lambda: bool(children.read_text()) and state(process.pid) == "D")
        with pytest.raises(NotStopped), stopped_threads(process.pid, 0, left):
            pass
        assert left == {process.pid}
        served = 0

        def serve() -> None:
            nonlocal served
            served += 1
            if served == 3:
                assert process.stdin is not None
                process.stdin.write(b"x")

        with stopped_threads(process.pid, 0, left, serve) as registers:
            assert served >= 3 and set(registers) == {process.pid}
        assert left == set()
        process.communicate(b"x", timeout=60)
        assert process.returncode == 0
