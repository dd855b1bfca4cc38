"""The loop of a trace wakes when there is something to do: not for the same end twice."""

from __future__ import annotations

import os
import signal

from tracer.capture.wakes import Wakes

PATIENCE_SECONDS = 60.0


def child() -> int:
    pid = os.fork()
    if pid == 0:
        try:
            signal.pause()
        finally:
            os._exit(0)
    return pid


def test_a_record_wakes() -> None:
    reader, writer = os.pipe()
    with Wakes(reader, (os.getpid(),)) as wakes:
        assert not wakes.wait(0)
        os.write(writer, b"x")
        assert wakes.wait(PATIENCE_SECONDS) and wakes.wait(0)
    os.close(reader)
    os.close(writer)


def test_the_end_of_the_process_wakes_once() -> None:
    reader, writer = os.pipe()
    pid = child()
    with Wakes(reader, (pid,)) as wakes:
        assert not wakes.wait(0)
        os.kill(pid, signal.SIGKILL)
        assert wakes.wait(PATIENCE_SECONDS)
        assert not wakes.wait(0)
        os.waitpid(pid, 0)
        assert not wakes.wait(0)
    os.close(reader)
    os.close(writer)


def test_a_process_that_has_ended_is_no_error() -> None:
    reader, writer = os.pipe()
    pid = child()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with Wakes(reader, (pid,)) as wakes:
        assert not wakes.wait(0)
    os.close(reader)
    os.close(writer)
