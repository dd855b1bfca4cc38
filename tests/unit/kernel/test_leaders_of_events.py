"""Events of a thread, which are in a group with one that is never switched on, and what is done where that is gone."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Any, cast

import pytest

from tracer.kernel import bpf
from tracer.kernel.place_events import Breakpoints, PlaceEvents

TID = 7


class FakeKernel:
    """Opens events, but refuses, after the first one, what is in the group of the first leader."""

    def __init__(self, refusal: int) -> None:
        self.refusal = refusal
        self.leaders: list[int] = []
        self.groups: list[tuple[int, int]] = []
        """Number of each event that was opened, and its leader."""

    def open_dummy_event(self, tid: int) -> int:
        assert tid == TID
        self.leaders.append(os.eventfd(0))
        return self.leaders[-1]

    def open_trace_events(self, numbers: Sequence[int], _: int, fds: list[int], *, enables: bool, group: int) -> None:
        assert enables
        for number in numbers:
            if self.groups and len(self.leaders) == 1:
                raise OSError(self.refusal, os.strerror(self.refusal))
            self.groups.append((number, group))
            fds.append(100 + number)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> FakeKernel:
    fake = FakeKernel(request.param)
    monkeypatch.setattr(bpf, "open_dummy_event", fake.open_dummy_event)
    monkeypatch.setattr(bpf, "open_trace_events", fake.open_trace_events)
    return fake


@pytest.mark.parametrize("kernel", [errno.EINVAL, errno.ENODEV], indirect=True)
def test_where_the_leader_is_gone_there_is_another_one(kernel: FakeKernel) -> None:
    """All probes of a child were refused once, with "No such device", beside other traces."""
    events, fds = PlaceEvents(cast(Any, None)), list[int]()
    events.open([1, 2, 3], TID, Breakpoints.THERE, fds)
    assert fds == [101, 102, 103]
    assert [number for number, _ in kernel.groups] == [1, 2, 3]
    assert len(kernel.leaders) == 2
    events.forget(TID)


@pytest.mark.parametrize("kernel", [errno.EMFILE], indirect=True)
def test_other_refusals_are_not_tried_again(kernel: FakeKernel) -> None:
    events = PlaceEvents(cast(Any, None))
    with pytest.raises(OSError, match="Too many open files"):
        events.open([1, 2, 3], TID, Breakpoints.THERE, [])
    assert len(kernel.leaders) == 1
    events.forget(TID)
