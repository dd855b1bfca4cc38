"""Who gets its probes by events, and from when on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tracer.kernel import bpf
from tracer.kernel.place_events import Breakpoints
from tracer.kernel.process_events import ProcessEvents
from tracer.model import records


def process_events(*, multi: bool, can_be_had: bool = True, are_many: bool = False) -> ProcessEvents:
    programs: Any = SimpleNamespace(
        probes=SimpleNamespace(multi=multi)
    )
    places: Any = SimpleNamespace(
        can_be_added=can_be_had and not are_many, claim=lambda: None,
        open=lambda numbers, tid, breakpoints, fds: fds.extend(numbers),
    )
    shared = np.zeros(1, records.SHARED)
    maps: Any = SimpleNamespace(fds={"BY_EVENTS": -1}, view=lambda *_: shared)
    return ProcessEvents(programs, places, maps)


def test_all_have_events_from_the_start() -> None:
    events = process_events(multi=False)
    assert events.can_be_used
    with events.first(7, Breakpoints.TO_COME):
        assert events.are_opened
    assert events.has(7)
    assert not events.are_opened


@pytest.mark.parametrize(
    ("multi", "can_be_had", "are_many"), [(True, True, False), (False, False, False), (False, True, True)]
)
def test_where_links_are_wanted_or_events_cannot_be_had_the_first_has_none(
    multi: bool, can_be_had: bool, are_many: bool
) -> None:  # fmt: skip
    events = process_events(multi=multi, can_be_had=can_be_had, are_many=are_many)
    assert not events.can_be_used
    with events.first(7, Breakpoints.MISSING):
        assert not events.are_opened
    assert not events.has(7)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give the processes of which only events count, in order."""
    pids: list[int] = []
    monkeypatch.setattr(bpf, "update_element", lambda _, key, __: pids.append(int.from_bytes(key, "little")))
    return pids


def test_events_count_once_all_are_there(counted: list[int]) -> None:
    """One by one they would tell of frees before they tell of what is made, should the process run."""
    events = process_events(multi=False)
    with events.beginning(7):
        fds: list[int] = []
        events.open(7, 1, [0x10, 0x20], [5, 6], fds)
        events.open(7, 1, [0x30], [8], fds)
        assert counted == []
    assert (counted, events.kept(7, 1)) == ([7], {0x10, 0x20, 0x30})
    with events.expecting(7, Breakpoints.MISSING):
        events.open(7, 2, [0x10], [7], fds)
    assert counted == [7]
