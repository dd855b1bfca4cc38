"""Reads of processes that run on: one where all sleep, else so many that none that moves is missed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import pytest

from tracer.procfs.tracers import tracer_of
from tracer.reachability.memory import REGION, WORD, Memory, RegionKind
from tracer.scanning.pointer_scan import TooMuch
from tracer.scanning.running_reads import PASSES, read_running, was_asleep
from tracer.scanning.stopped_threads import Words, stack_pointer
from tracer.scanning.thread_activity import activity, is_away

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="programs of the kernel need root")
SLEEPS = "print('ready', flush=True); input()"
SPINS = "print('ready', flush=True)\nwhile True: pass"


def started(code: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


@pytest.fixture
def sleeper() -> Iterator[int]:
    with started(SLEEPS) as process:
        while not all(map(is_away, activity(process.pid).values())):
            time.sleep(0.001)
        yield process.pid
        process.kill()


@pytest.fixture
def spinner() -> Iterator[int]:
    with started(SPINS) as process:
        yield process.pid
        process.kill()


class Passes:
    """Counts passes; each finds one word, at a place of its own."""

    def __init__(self) -> None:
        self.count = 0
        self.away: list[set[int]] = []
        self.registers: list[dict[int, Words]] = []

    def __call__(self, registers: dict[int, Words], away: Collection[int]) -> Memory:
        self.count += 1
        self.away.append(set(away))
        self.registers.append(registers)
        words = np.array([(0x1000 + 8 * self.count, 0x5000)], WORD)
        return Memory(np.array([(0x1000, 0x2000, RegionKind.GLOBAL)], REGION), words, time_ns=self.count)


def test_one_pass_is_enough_where_all_sleep(sleeper: int) -> None:
    passes = Passes()
    read = read_running(sleeper, 0, passes, lambda: None)
    assert (read.passes, passes.away[-1], set(read.registers)) == (1, {sleeper}, {sleeper})
    line = Path(f"/proc/{sleeper}/syscall").read_text().split()
    assert stack_pointer(read.registers[sleeper]) == int(line[-2], 16)
    assert was_asleep(read, sleeper)


def test_that_it_ran_since_is_seen(sleeper: int) -> None:
    read = read_running(sleeper, 0, Passes(), lambda: None)
    os.kill(sleeper, signal.SIGSTOP)
    while next(iter(activity(sleeper).values()))[0] != "T":
        time.sleep(0.001)
    assert not was_asleep(read, sleeper)


def test_one_that_runs_is_read_often(spinner: int) -> None:
    passes, served = Passes(), [0]
    read = read_running(spinner, 0, passes, lambda: served.__setitem__(0, served[0] + 1))
    assert (read.passes, read.asleep, read.memory.time_ns) == (PASSES, None, 1)
    assert len(read.memory.words) == PASSES
    assert served[0] == passes.count >= PASSES
    assert passes.away[-1] == set()
    assert stack_pointer(read.registers[spinner]) != 0


def test_what_takes_too_long_is_given_up(spinner: int) -> None:
    with pytest.raises(TooMuch, match="without stopping it took too long"):
        read_running(spinner, 0, Passes(), lambda: None, seconds=0)


def test_a_thread_that_is_held_is_left_out(sleeper: int) -> None:
    assert read_running(sleeper, sleeper, Passes(), lambda: None).registers == {}


def test_who_traces_a_process(sleeper: int) -> None:
    assert tracer_of(sleeper) is None
    code = (
        "import ctypes, sys; libc = ctypes.CDLL(None); assert libc.ptrace(0x4206, int(sys.argv[1]), None, None) == 0;"
        "print('ready', flush=True); input()"
    )
    command = [sys.executable, "-c", code, str(sleeper)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tracer:
        assert tracer.stdout is not None
        assert tracer.stdout.readline() == b"ready\n"
        name = Path(f"/proc/{tracer.pid}/comm").read_text().strip()
        assert tracer_of(sleeper) == f"{name} (pid {tracer.pid})"
        tracer.kill()
