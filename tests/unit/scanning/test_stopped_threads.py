"""Threads of another process are stopped, and let go of, whatever they do meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from tracer.scanning.stopped_threads import NotStopped, let_go, stack_pointer, stopped_threads, thread_ids

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
