"""tracer.procfs.process: the same as psutil says, which reads more."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psutil
import pytest

from tracer.procfs.process import command_line, credentials, has_other_rights, is_alive, parent

WAIT = "import sys; print(flush=True); sys.stdin.read()"
TITLE = f"import ctypes; ctypes.CDLL(None).prctl(15, b'a) Z (b', 0, 0, 0); {WAIT}"
"""Its name looks as if the fields of /proc/PID/stat came after it."""


OVERWRITES = """
import ctypes, sys
libc = ctypes.CDLL(None)
stat = open("/proc/self/stat").read().rpartition(")")[2].split()
start, end = int(stat[45]), int(stat[46])  # arg_start and arg_end of proc_pid_stat(5)
libc.memset(ctypes.c_void_p(start), 0, end - start)
ctypes.memmove(start, b"server: *:80", 12)
print(flush=True)
sys.stdin.read()
"""


@contextmanager
def running(command: Sequence[str], **options: object) -> Iterator[int]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)  # type: ignore[call-overload]
    with process:
        assert process.stdout is not None and process.stdout.readline()
        yield process.pid
        process.kill()


@pytest.mark.parametrize(
    "words", [["-c", WAIT], ["-c", TITLE], ["-c", WAIT, "", "a b", "\udcff"], ["-c", WAIT, ""]]
)
def test_a_process_that_runs(words: list[str]) -> None:
    with running([sys.executable, *words]) as pid:
        known = psutil.Process(pid)
        assert command_line(pid) == (sys.executable, *words) == tuple(known.cmdline())
        assert parent(pid) == os.getpid() == known.ppid()
        assert is_alive(pid)
        assert not has_other_rights(pid)
        who = credentials(pid)
        assert who is not None
        assert (who.inner_pid, who.user) == (pid, known.uids().effective)
        assert who.started_ns == pytest.approx(known.create_time() * 1e9, abs=2e9)


def test_a_process_that_has_ended_and_is_waited_for() -> None:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE
        assert not is_alive(process.pid)
        assert command_line(process.pid) == ()
        assert parent(process.pid) == os.getpid()


def test_a_process_that_is_gone() -> None:
    with subprocess.Popen(["true"]) as process:
        pass
    gone = process.pid
    assert (command_line(gone), parent(gone), credentials(gone)) == ((), None, None)
    assert not is_alive(gone)
    assert not has_other_rights(gone)


def test_a_title_over_the_arguments_has_no_empty_words() -> None:
    """Redis was called 'redis-server *:7778' '' '' '' ..."""
    with running([sys.executable, "-c", OVERWRITES, "some", "more"]) as pid:
        assert command_line(pid) == ("server:", "*:80")
    with running([sys.executable, "-c", WAIT, "", ""]) as pid:
        assert command_line(pid)[2:] == (WAIT, "", "")
