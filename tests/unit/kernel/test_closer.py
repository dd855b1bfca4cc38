"""The process that closes refleak's files when refleak was killed: it shares them, and lets nobody wait for it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tracer.kernel import blocked_signals
from tracer.kernel.closer import Closer
from tracer.kernel.uprobe_events import UprobeEvents

PATIENCE_SECONDS = 60


def in_child(work: Callable[[], None]) -> int:
    """Fork a child that does this and then waits for its end; return its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            signal.pause()
        finally:
            os._exit(1)
    return pid


def at_end(fd: int) -> bool:
    """Return whether a pipe comes to its end in time."""
    return bool(select.select([fd], [], [], PATIENCE_SECONDS)[0]) and os.read(fd, 16) == b""


def test_files_are_closed_when_their_owner_is_killed() -> None:
    said, tell = os.pipe()

    def own_a_closer() -> None:
        closer = Closer(UprobeEvents())
        late = os.pipe()[1]  # in the table that they share, though opened later
        os.write(tell, f"{closer._pid} {late}".encode())

    owner = in_child(own_a_closer)
    os.close(tell)
    closer, late = map(int, os.read(said, 64).split())
    handle = os.pidfd_open(closer)
    try:
        assert str(Path(f"/proc/{closer}/fd/{late}").readlink()).startswith("pipe:")
    finally:
        os.kill(owner, signal.SIGKILL)
        os.waitpid(owner, 0)
    assert at_end(said)
    assert select.select([handle], [], [], PATIENCE_SECONDS)[0]
    os.close(handle)
    os.close(said)


def test_it_ends_when_it_is_not_needed() -> None:
    kept, other = os.pipe()
    closer = Closer(UprobeEvents())
    pid = closer._pid
    closer.stop()
    closer.stop()
    assert not Path(f"/proc/{pid}").exists()
    os.write(other, b"still open")
    assert os.read(kept, 16) == b"still open"
    os.close(kept)
    os.close(other)


@pytest.mark.parametrize("turn", range(5))
def test_it_works_where_threads_run(turn: int) -> None:
    """As in a notebook, and in most programs that use the library: the copy has none of them, but what they locked."""
    said, tell = os.pipe()

    def own_a_closer() -> None:
        for _ in range(3):
            threading.Thread(target=busy, daemon=True).start()
        time.sleep(0.02 + 0.003 * turn)
        closer = Closer(UprobeEvents())
        assert closer.is_ready
        os.write(tell, b"ready")

    owner = in_child(own_a_closer)
    os.close(tell)
    assert os.read(said, 16) == b"ready"
    os.kill(owner, signal.SIGKILL)
    os.waitpid(owner, 0)
    assert at_end(said)
    os.close(said)


def busy() -> None:
    while True:
        bytes(range(256)) * 100


INTERRUPTED = """
import ctypes, os, signal
from functools import partial
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where it is ignored, as in a job in the background
send = partial(ctypes.CDLL(None).kill, os.getpid(), int(signal.SIGINT))  # which Python sees after the hooks
os.register_at_fork(before=send)  # the first that is registered is called last
from concurrent.futures import ThreadPoolExecutor
from tracer.kernel.closer import Closer
from tracer.kernel.uprobe_events import UprobeEvents
with ThreadPoolExecutor(1) as pool:
    pool.submit(int).result()
try:
    Closer(UprobeEvents())
except KeyboardInterrupt:
    print("interrupted", os.getpid(), flush=True)
"""


def test_an_interrupt_while_it_is_started_is_told_once_and_lets_the_process_end() -> None:
    """The end of Python waited for ever for a lock that is taken before a fork and released after it."""
    command = [sys.executable, "-c", INTERRUPTED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        handle = os.pidfd_open(process.pid)
        has_ended = select.select([handle], [], [], PATIENCE_SECONDS)[0] != []
        os.close(handle)
        process.kill()
        assert process.stdout is not None and process.stdout.read() == f"interrupted {process.pid}\n"
    assert (has_ended, process.returncode) == (True, 0)


def test_an_interrupt_while_signals_are_blocked_leaves_none_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        raise KeyboardInterrupt

    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    monkeypatch.setattr(blocked_signals, "block_signals", interrupted)
    with pytest.raises(KeyboardInterrupt), blocked_signals.signals_later():
        pass
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
