"""Last calls of processes that are being stopped wait until these go on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from tracer.kernel.maps import Maps
from tracer.model.records import CONTROL, ControlKind
from tracer.scanning.endings import Endings
from tracer.unwinding.dwarf_unwinder import DwarfUnwinder
from tracer.unwinding.stack_dump import StackDump

_NO_FILE = 1 << 30


def no_walk(dump: StackDump) -> DwarfUnwinder:
    return cast(DwarfUnwinder, dump)


def record(pid: int, kind: ControlKind, ticket: int = 0) -> bytes:
    row = np.zeros(1, CONTROL)
    row["pid"], row["kind"], row["ticket"] = pid, kind, ticket
    return row.tobytes()


@pytest.fixture
def endings() -> Endings:
    maps = cast(Maps, SimpleNamespace(fds={"THREADS": _NO_FILE}))
    return Endings(maps, lambda now: now, None, no_walk)


@pytest.fixture
def sleeper() -> Iterator[int]:
    command = [sys.executable, "-c", "print('ready', flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        process.kill()


def nothing() -> None:
    pass


def test_while_nobody_is_stopped_all_are_handled_at_once(endings: Endings) -> None:
    blobs = [record(7, ControlKind.ENDING), record(7, ControlKind.EXIT)]
    assert endings.put_off(blobs) == blobs
    assert endings.put_off([]) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="ptrace of another process needs root here")
def test_last_calls_of_those_that_stand_wait_and_come_first_then(endings: Endings, sleeper: int) -> None:
    own = [record(sleeper, ControlKind.ENDING, ticket) for ticket in (1, 2)]
    forks, other = record(sleeper, ControlKind.FORK), record(sleeper + 1, ControlKind.ENDING)
    handled: list[list[bytes]] = []

    def freeze() -> None:
        handled.append(endings.put_off([own[0], forks, other]))
        handled.append(endings.put_off([own[1]]))
        handled.append(endings.put_off([]))

    endings.look_into([(sleeper, 0)], freeze, nothing)
    assert handled == [[forks, other], [], []]
    assert endings.put_off([forks]) == [*own, forks]
    assert endings.put_off([]) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="ptrace of another process needs root here")
def test_what_was_put_off_is_not_lost_where_the_look_fails(endings: Endings, sleeper: int) -> None:
    ending = record(sleeper, ControlKind.ENDING)

    def freeze() -> None:
        assert endings.put_off([ending]) == []
        raise RuntimeError

    with pytest.raises(RuntimeError):
        endings.look_into([(sleeper, 0)], freeze, nothing)
    assert endings.put_off([]) == [ending]


def test_one_that_is_not_stopped_is_handled_at_once(sleeper: int) -> None:
    maps = cast(Maps, SimpleNamespace(fds={"THREADS": _NO_FILE}))
    running = Endings(maps, lambda now: now, "no reason", no_walk)
    ending = record(sleeper, ControlKind.ENDING)
    handled: list[bytes] = []
    running.look_into([(sleeper, 0)], nothing, nothing, lambda: handled.extend(running.put_off([ending])))
    assert handled == [ending]
