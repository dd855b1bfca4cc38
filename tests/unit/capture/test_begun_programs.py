"""Begun programs: what they map is read while they are held at their first step, once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tracer.capture.follower import Follower
from tracer.kernel.releases import Releases
from tracer.mishaps import Mishaps
from tracer.model import records
from tracer.model.records import ControlKind
from tracer.spaces.listener import SpaceListener
from tracer.spaces.processes import ProcessTable

LOADER = SimpleNamespace(id=1, is_translator=False)


class FakeSpaces(SpaceListener):
    """Counts how often the mappings of a process are read."""

    def __init__(self) -> None:
        self.readings = 0

    def refresh(self, pid: int, generation: int, now_ns: int) -> list[Any]:
        self.readings += 1
        return [LOADER]


class FakeProber:
    """Notes whose mappings are probed."""

    def __init__(self) -> None:
        self.is_held, self.mapped = True, 0

    def executed(self, pid: int) -> None: ...

    def gained_rights(self, pid: int) -> None: ...

    def holds_start(self, pid: int, binaries: Sequence[Any]) -> bool:
        return self.is_held

    def maps(self, pid: int, binaries: Sequence[Any]) -> None:
        self.mapped += 1


@pytest.fixture
def parts() -> Any:
    """Give a follower, the spaces and the prober that it has."""
    released = np.zeros(records.HOLD_SLOTS, np.uint64)
    maps = SimpleNamespace(fds={"PROCESSES": -1, "HOLDS": -1}, view=lambda *_: {"released": [released]})
    code = SimpleNamespace(listeners=(), interface=None, registry=None)
    spaces, prober, nothing = FakeSpaces(), FakeProber(), SimpleNamespace(recheck=lambda: None)
    follower = Follower(
        maps, nothing, prober, spaces, code, (SpaceListener(),), ProcessTable(), lambda ns: ns,  # type: ignore[arg-type]
        Mishaps(), nothing, nothing, Releases(maps), can_hold=True,  # type: ignore[arg-type]
    )  # fmt: skip
    follower.expect_exec(os.getpid())
    return follower, spaces, prober, released


def told(kind: ControlKind, ticket: int = 0) -> bytes:
    record = np.zeros(1, records.CONTROL)
    record["kind"], record["pid"], record["tid"], record["generation"] = kind, os.getpid(), os.getpid(), 1
    record["ticket"] = ticket
    return record.tobytes()


def test_who_stands_at_its_first_step_is_looked_at_once(parts: Any) -> None:
    follower, spaces, prober, released = parts
    follower.handle([told(ControlKind.EXEC), told(ControlKind.STARTED, 8)])
    assert (spaces.readings, prober.mapped, len(follower.unfollowed.programs)) == (1, 1, 0)
    assert released[os.getpid() % records.HOLD_SLOTS] == 8


def test_who_is_not_there_yet_is_looked_at_where_it_is(parts: Any) -> None:
    follower, spaces, prober, _ = parts
    follower.handle([told(ControlKind.EXEC)])
    assert (spaces.readings, prober.mapped) == (1, 0)
    follower.handle([told(ControlKind.STARTED, 8)])
    assert (spaces.readings, prober.mapped, len(follower.unfollowed.programs)) == (2, 1, 0)


@pytest.mark.parametrize("ticket", [0, 8])
def test_who_may_have_run_before_is_counted(parts: Any, ticket: int) -> None:
    follower, _, prober, _ = parts
    prober.is_held = False
    follower.handle([told(ControlKind.EXEC), told(ControlKind.STARTED, ticket)])
    assert len(follower.unfollowed.programs) == 1
    assert prober.mapped == 2
