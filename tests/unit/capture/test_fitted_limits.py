"""Limits of a trace where memory is short."""

from __future__ import annotations

import pytest

from tracer.capture.fitted_limits import ENOUGH_BYTES, LEAST_BYTES, fitted, fitted_note
from tracer.errors import TooLittleMemory
from tracer.kernel.maps import Limits
from tracer.procfs.memory_room import MemoryRoom

USUAL = Limits()


def test_with_enough_all_is_as_usual() -> None:
    for room in (None, MemoryRoom(ENOUGH_BYTES, "this machine"), MemoryRoom(1000 << 20, "this machine")):
        assert fitted(USUAL, room) is USUAL
    assert fitted_note(USUAL) == ()


@pytest.mark.parametrize(("mebibytes", "halvings"), [(959, 1), (512, 1), (400, 2), (256, 2), (200, 3)])
def test_the_less_is_left_the_less_is_kept(mebibytes: int, halvings: int) -> None:
    limits = fitted(USUAL, MemoryRoom(mebibytes << 20, "the cgroup /a"))
    assert limits.objects == USUAL.objects >> halvings
    assert limits.event_ring_bytes == USUAL.event_ring_bytes >> halvings
    assert (limits.threads, limits.hold_seconds) == (USUAL.threads, USUAL.hold_seconds)
    [note] = fitted_note(limits)
    assert note.startswith(f"the cgroup /a has {mebibytes} MiB of memory left, so {limits.objects:,} live blocks and")


def test_what_the_user_chose_stays() -> None:
    limits = fitted(Limits(objects=1000, freed=7), MemoryRoom(LEAST_BYTES, "this machine"))
    assert (limits.objects, limits.freed) == (1000, 7)
    assert limits.stacks < USUAL.stacks


def test_too_little_is_refused() -> None:
    with pytest.raises(TooLittleMemory, match=r"^the cgroup /a has 175 MiB of memory left, and a trace takes 176 MiB$"):
        fitted(USUAL, MemoryRoom(LEAST_BYTES - 1, "the cgroup /a"))
    with pytest.raises(TooLittleMemory, match=r"^this machine has 3 MiB") as refused:
        fitted(USUAL, MemoryRoom(3 << 20, "this machine"))
    assert "cgroup" not in refused.value.hint
