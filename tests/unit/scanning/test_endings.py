"""Last calls of processes that are being stopped wait until these go on; and why nothing is told of some."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import numpy as np
import pytest
from hand_made import blocks, process, snapshot

from tracer.aggregation.freed_counters import FREED_BLOCK
from tracer.kernel.maps import Maps
from tracer.model.addresses import Space
from tracer.model.records import CONTROL, ControlKind
from tracer.reachability.memory import Memory
from tracer.scanning import endings as module
from tracer.scanning.endings import Endings
from tracer.scanning.layout import Layout
from tracer.scanning.pointer_scan import TooMuch
from tracer.scanning.surroundings import ModuleTable
from tracer.unwinding.dwarf_unwinder import DwarfUnwinder
from tracer.unwinding.stack_dump import StackDump

_NO_FILE = 1 << 30


def no_walk(dump: StackDump) -> DwarfUnwinder:
    return cast(DwarfUnwinder, dump)


def untold(_: Space) -> bool:
    return False


def record(pid: int, kind: ControlKind, ticket: int = 0) -> bytes:
    row = np.zeros(1, CONTROL)
    row["pid"], row["kind"], row["ticket"] = pid, kind, ticket
    return row.tobytes()


def no_storage(_: object, __: object) -> list[tuple[int, int]]:
    return []


@pytest.fixture
def endings() -> Endings:
    maps = cast(Maps, SimpleNamespace(fds={"THREADS": _NO_FILE}))
    return Endings(maps, lambda now: now, None, no_walk, untold, no_storage)


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
    running = Endings(maps, lambda now: now, "no reason", no_walk, untold, no_storage)
    ending = record(sleeper, ControlKind.ENDING)
    handled: list[bytes] = []
    running.look_into([(sleeper, 0)], nothing, nothing, lambda: handled.extend(running.put_off([ending])))
    assert handled == [ending]


def reason(endings: Endings, pid: int, ended_ns: int | None = 9, *, by_exec: bool = False) -> str | None:
    """Return why nothing is told of a process."""
    whole = snapshot(
        processes=(process(pid, generation=0, ended_ns=ended_ns, by_exec=by_exec),), binaries=(),
        allocations=blocks({"address": 0x8000, "size": 8}, pid=pid, generation=0),
    )  # fmt: skip
    (scan,) = endings.judged(whole, np.zeros(0, FREED_BLOCK), ModuleTable(whole)).scans
    return scan.reason


def ending(pid: int) -> np.void:
    return np.frombuffer(record(pid, ControlKind.ENDING), CONTROL)[0]


def fail(*_: object) -> NoReturn:
    raise RuntimeError


@pytest.fixture
def failing(endings: Endings, monkeypatch: pytest.MonkeyPatch) -> Endings:
    """Whatever is read is not understood."""
    monkeypatch.setattr(endings, "_made_nothing", lambda _: False)
    monkeypatch.setattr(endings, "_memory_of_held", fail)
    monkeypatch.setattr(endings, "_memory_of", fail)
    return endings


def test_why_nothing_was_seen(endings: Endings) -> None:
    assert reason(endings, 7) == "its last call was not seen"
    assert reason(endings, 7, ended_ns=None) == "it was not there yet when the others were read"


def test_a_last_call_that_was_seen_is_not_said_to_be_missing(failing: Endings) -> None:
    with pytest.raises(RuntimeError):
        failing.held(ending(7))
    assert reason(failing, 7) == "its memory could not be read"


@pytest.mark.skipif(os.geteuid() != 0, reason="ptrace of another process needs root here")
def test_one_whose_memory_was_not_understood_has_no_last_call(failing: Endings, sleeper: int) -> None:
    with pytest.raises(RuntimeError):
        failing.look_into([(sleeper, 0)], nothing, nothing)
    assert reason(failing, sleeper, ended_ns=None) == "its memory could not be read"


def test_a_look_meanwhile_does_not_lose_what_was_read_at_the_end(
    endings: Endings, sleeper: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes to its last call meanwhile, as one that is not stopped may; or was there before."""
    monkeypatch.setattr(endings, "_made_nothing", lambda _: True)
    endings.stops = False
    made_nothing = "it allocated nothing itself"
    endings.look_into([(sleeper, 0)], lambda: endings.held(ending(sleeper)), nothing, nothing)
    assert reason(endings, sleeper) == made_nothing
    endings.held(ending(sleeper))
    endings.look_into([(sleeper, 0)], nothing, nothing, nothing)
    assert reason(endings, sleeper) == made_nothing


def test_an_exec_that_was_read_is_no_end_unless_it_came_about(
    endings: Endings, sleeper: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_much(_: object) -> NoReturn:
        raise TooMuch("it is too much")

    monkeypatch.setattr(endings, "_made_nothing", lambda _: False)
    monkeypatch.setattr(endings, "_memory_at_exec", too_much)
    executes = np.frombuffer(record(sleeper, ControlKind.EXECUTES), CONTROL)[0]
    assert reason(endings, sleeper, by_exec=True) == "it executed another program"
    for by_exec, said in ((True, "it is too much"), (False, "its last call was not seen")):
        endings.executes(executes)
        assert reason(endings, sleeper, by_exec=by_exec) == said
    monkeypatch.setattr(endings, "_made_nothing", lambda _: True)
    endings.executes(executes)
    assert reason(endings, sleeper, by_exec=True) == "it executed another program"


@pytest.mark.parametrize("at_exec", [False, True])
def test_what_is_made_when_threads_are_let_go_is_younger_than_what_was_read(
    endings: Endings, sleeper: int, monkeypatch: pytest.MonkeyPatch, at_exec: bool
) -> None:
    """They run on one after the other, before the last has been let go of: a block of theirs was called lost."""
    let_go = list[int]()

    @contextmanager
    def stopped(*_: object) -> Iterator[dict[int, Any]]:
        yield {}
        let_go.append(time.monotonic_ns())
        time.sleep(0.01)

    monkeypatch.setattr(module, "stopped_threads", stopped)
    monkeypatch.setattr(module, "is_held", lambda *_: True)
    monkeypatch.setattr(Endings, "_made_nothing", lambda *_: False)
    monkeypatch.setattr(Endings, "_scan", lambda *_: (Memory(), Layout((), (), (), ())))
    monkeypatch.setattr(module, "dumped_walks", lambda *_: [])
    control = ending(sleeper).copy()
    control["thread"] = sleeper
    before = time.monotonic_ns()
    (endings.executes if at_exec else endings.held)(control)
    (read,) = endings._last.values()
    assert read.memory is not None and before < read.memory.time_ns <= let_go[0]
