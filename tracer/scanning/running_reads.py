"""Reads of a process that runs on: once where all its threads slept meanwhile, else so often that a pointer that moves
cannot be missed each time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection
from contextlib import closing, suppress
from dataclasses import replace

import numpy as np

from tracer.kernel.task_registers import TaskRegisters
from tracer.late_dataclasses import dataclass
from tracer.procfs.process import thread_ids
from tracer.reachability.memory import Memory
from tracer.reachability.merged_memory import MergedMemory
from tracer.scanning.pointer_scan import TooMuch
from tracer.scanning.stopped_threads import REGISTERS, Words
from tracer.scanning.thread_activity import Activity, activity, is_away

PASSES = 32
"""A pointer that is in one of many places at random is missed by a pass with a chance of 1/e at most: e ** -32."""
_TRIES = 4
"""So often a thread may run that was taken to sleep through a pass; then each stack is read as a whole."""
MOST_SECONDS = 20.0
_PAUSE_SECONDS = 0.004
"""A tick of the slowest clock: what a running thread has in its registers is known from its last interrupt."""

Pass = Callable[[dict[int, Words], Collection[int]], Memory]
"""Reads the memory once. Given the registers of the threads, and which of these stay where they are meanwhile."""


@dataclass(frozen=True)
class RunningRead:
    memory: Memory
    passes: int
    registers: dict[int, Words]
    """Of the last pass, by thread."""
    asleep: Activity | None
    """What the threads had done, where none of them ran while the memory was read; else None."""


def read_running(
    pid: int, but: int, make_pass: Pass, serve: Callable[[], None], seconds: float = MOST_SECONDS
) -> RunningRead:
    """Read a process. `but`: a thread that is held; `serve` is called between passes. Raises TooMuch, OSError."""
    try:
        registers = TaskRegisters()
    except OSError as error:
        raise TooMuch(f"this kernel does not tell what running threads have in registers ({error})") from None
    with closing(registers):
        return _read(pid, but, registers, make_pass, serve, time.monotonic() + seconds)


def _read(
    pid: int, but: int, registers: TaskRegisters, make_pass: Pass, serve: Callable[[], None], deadline: float
) -> RunningRead:
    merged, time_ns, tries = MergedMemory(), 0, 0
    found: dict[int, Words] = {}
    while merged.passes < PASSES:
        if merged.passes and time.monotonic() > deadline:
            raise TooMuch(f"to read it {PASSES} times without stopping it took too long")
        before = _without(activity(pid), but)
        away = {tid: one for tid, one in before.items() if is_away(one)} if tries < _TRIES else {}
        found = _of_threads(registers, pid, but)
        memory = make_pass(found, away)
        after = _without(activity(pid), but)
        if away == before == after:
            return RunningRead(memory, 1, found, before)
        if all(after.get(tid) == one for tid, one in away.items()):
            time_ns = time_ns if merged.passes else memory.time_ns
            merged.add(memory)
        else:
            tries += 1
        serve()
        time.sleep(random.uniform(_PAUSE_SECONDS, 3 * _PAUSE_SECONDS))  # of no rhythm that the process may have
    return RunningRead(replace(merged.memory, time_ns=time_ns), merged.passes, found, None)


def _of_threads(registers: TaskRegisters, pid: int, but: int) -> dict[int, Words]:
    found: dict[int, Words] = {}
    for tid in thread_ids(pid):
        words = registers.of(tid) if tid != but else None
        if words is not None:
            found[tid] = np.append(words, np.zeros(REGISTERS - len(words), np.uint64))
    return found


def was_asleep(read: RunningRead, pid: int) -> bool:
    """Whether no thread has run since the memory was read."""
    with suppress(OSError):
        return read.asleep is not None and activity(pid) == read.asleep
    return False


def registers_of(tid: int) -> Words | None:
    """Return the registers of a thread that is in the kernel, as it entered that; None where they cannot be told."""
    with suppress(OSError), closing(TaskRegisters()) as registers:
        words = registers.of(tid)
        return None if words is None else np.append(words, np.zeros(REGISTERS - len(words), np.uint64))
    return None


def _without(now: Activity, but: int) -> Activity:
    return {tid: one for tid, one in now.items() if tid != but}
