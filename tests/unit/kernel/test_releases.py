"""Tests of tracer.kernel.releases: who is held goes on, also where another one has the same slot."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tracer.kernel.kernel_records import HOLD
from tracer.kernel.releases import Releases
from tracer.model import records

SLOT = 7
MAKER, CHILD, THIRD = SLOT, SLOT + records.HOLD_SLOTS, SLOT + 2 * records.HOLD_SLOTS


class Kernel:
    """Threads that stand held, each until it sees its ticket; `now` is what the clock says."""

    def __init__(self) -> None:
        self.held: dict[int, int] = {}
        self.now = 100.0
        self.shared = np.zeros(1, records.SHARED)
        self.maps: Any = SimpleNamespace(fds={"HOLDS": 3}, view=lambda *_: self.shared)

    def lookup(self, _: int, key: bytes, size: int) -> bytes | None:
        tid = int.from_bytes(key, "little")
        if tid not in self.held:
            return None
        hold = np.zeros(1, HOLD)
        hold["ticket"] = self.held[tid]
        return hold.tobytes()[:size]

    def run(self, tid: int) -> bool:
        """Have a thread look; return whether it went on."""
        if self.shared["released"][0][tid % records.HOLD_SLOTS] != self.held[tid]:
            return False
        del self.held[tid]
        return True


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    kernel = Kernel()
    monkeypatch.setattr("tracer.kernel.known_threads.bpf.lookup_element", kernel.lookup)
    monkeypatch.setattr("tracer.kernel.releases.time.monotonic", lambda: kernel.now)
    return kernel


def test_one_that_is_held_goes_on(kernel: Kernel) -> None:
    releases = Releases(kernel.maps)
    kernel.held[MAKER] = 11
    assert not kernel.run(MAKER)
    releases.release(MAKER, 11)
    assert kernel.run(MAKER) and not releases.has_waiting


def test_two_of_one_slot_go_on_one_after_the_other(kernel: Kernel) -> None:
    """The maker had no processor when the child was released."""
    releases = Releases(kernel.maps)
    kernel.held.update({MAKER: 11, CHILD: 12})
    releases.release(MAKER, 11)
    releases.release(CHILD, 12)
    assert releases.has_waiting and not kernel.run(CHILD) and kernel.run(MAKER)
    releases.again()
    assert kernel.run(CHILD)
    kernel.now += 1
    releases.again()
    assert not releases.has_waiting


def test_one_that_begins_to_wait_late_goes_on_too(kernel: Kernel) -> None:
    """It told of itself, was released, and another one of its slot, before it stood held."""
    releases = Releases(kernel.maps)
    kernel.held[CHILD] = 12
    releases.release(MAKER, 11)
    releases.release(CHILD, 12)
    assert kernel.run(CHILD)
    kernel.held[MAKER] = 11
    assert not kernel.run(MAKER) and releases.has_waiting
    releases.again()
    assert kernel.run(MAKER)


def test_what_went_on_long_ago_is_forgotten(kernel: Kernel) -> None:
    releases = Releases(kernel.maps)
    for tid, ticket in ((MAKER, 11), (CHILD, 12), (THIRD, 13)):
        kernel.held[tid] = ticket
        releases.release(tid, ticket)
        assert kernel.run(tid) and not releases.has_waiting
        kernel.now += 1


def test_a_thread_that_is_held_again_has_another_ticket(kernel: Kernel) -> None:
    releases = Releases(kernel.maps)
    for ticket in (11, 12, 13):
        kernel.held[MAKER] = ticket
        releases.release(MAKER, ticket)
        assert kernel.run(MAKER)
    assert not releases.has_waiting
