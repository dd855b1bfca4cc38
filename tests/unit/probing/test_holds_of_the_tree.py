"""Which holds a process has by itself, and which it has in common with its children."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from tracer.kernel.links import Hold
from tracer.model.records import ControlKind
from tracer.probing.prober import Prober

LIBC = SimpleNamespace(id=7, path="/libc.so.6", placements=[], unwinders=())
VDSO = SimpleNamespace(id=8, path="[vdso]", placements=[], unwinders=())
FORKED, EXECUTES, LOADER, ENDING, JIT = (
    Hold(offset, kind) for offset, kind in enumerate(
        (ControlKind.FORKED, ControlKind.EXECUTES, ControlKind.LOADER, ControlKind.ENDING, ControlKind.JIT)
    )
)  # fmt: skip
ALL = [FORKED, EXECUTES, LOADER, ENDING, JIT]


class NoEvents:
    """No process has its probes by events."""

    can_be_used = False

    def __init__(self) -> None:
        self.claimed: list[int] = []


    def has(self, pid: int) -> bool:
        return False

    def expecting(self, pid: int, breakpoints: Any) -> AbstractContextManager[None]:
        self.claimed.append(pid)
        return nullcontext()


class FakeAttacher:
    """Notes what it is to attach."""

    def __init__(self, *, waits: bool, has_tracefs: bool = True) -> None:
        self.events = NoEvents()
        self.waits_for_the_held, self._has_tracefs = waits, has_tracefs
        self.own: list[tuple[int, Hold]] = []
        self.of_tree: list[tuple[int, Hold]] = []

    def attach_unwinders(self, pid: int, binary: Any) -> None: ...

    def attach_sites(self, pid: int, binary: Any, placed: Any) -> None: ...

    def attach_holds(self, pid: int, binary: Any, holds: list[Hold]) -> None:
        self.own += [(pid, hold) for hold in holds]

    def keep_apart(self, pid: int) -> None:
        pass

    def attach_tree_holds(self, pid: int, binary: Any, holds: list[Hold]) -> None:
        if not self._has_tracefs:
            raise FileNotFoundError
        self.of_tree += [(pid, hold) for hold in holds]


@pytest.fixture
def linked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give a function that links a process and a child of its with an attacher."""

    def link(attacher: FakeAttacher, *, follow: bool = True) -> Prober:
        nothing: Any = None
        prober = Prober(nothing, nothing, nothing, attacher, nothing, follow=follow)  # type: ignore[arg-type]
        monkeypatch.setattr(prober, "_is_fit", lambda binary: True)
        prober._holds |= {LIBC.id: ALL, VDSO.id: []}
        prober.link(100, [LIBC])  # type: ignore[list-item]
        prober.forked(100, 101)
        return prober

    return link


def test_children_have_their_own_of_what_they_need_no_sooner(linked: Any) -> None:
    linked(attacher := FakeAttacher(waits=False))
    assert attacher.of_tree == [(100, FORKED), (100, EXECUTES)]
    assert attacher.own == [(pid, hold) for pid in (100, 101) for hold in (LOADER, ENDING, JIT)]


def test_where_an_attach_waits_for_who_is_held_no_place_is_attached_to_twice(linked: Any) -> None:
    prober = linked(attacher := FakeAttacher(waits=True))
    assert attacher.of_tree == [(100, hold) for hold in (FORKED, EXECUTES, LOADER, ENDING)]
    assert attacher.own == [(100, JIT), (101, JIT)]
    assert prober.holds_start(101, [])
    prober.gained_rights(101)  # the kernel took what was inherited
    assert not prober.holds_start(101, [])


def test_without_tracefs_the_loaders_hold_is_each_processs_own(linked: Any) -> None:
    linked(attacher := FakeAttacher(waits=True, has_tracefs=False))
    assert attacher.of_tree == []
    assert attacher.own == [
        (100, JIT), (0, FORKED), (0, EXECUTES), (100, LOADER), (100, ENDING), (101, LOADER), (101, ENDING), (101, JIT),
    ]  # fmt: skip


def test_what_is_not_followed_has_all_by_itself(linked: Any) -> None:
    prober = linked(attacher := FakeAttacher(waits=True), follow=False)
    assert attacher.of_tree == []
    assert attacher.own == [(pid, hold) for pid in (100, 101) for hold in (EXECUTES, LOADER, ENDING, JIT)]
    assert prober.holds_start(100, [])


@pytest.mark.parametrize("follow", [True, False])
def test_events_are_claimed_only_for_what_a_process_lacks(linked: Any, follow: bool) -> None:
    prober = linked(attacher := FakeAttacher(waits=False), follow=follow)
    prober.maps(101, [LIBC, VDSO])
    assert attacher.events.claimed == []
    prober.maps(102, [LIBC, VDSO])
    assert attacher.events.claimed == [102]
    assert (102, ENDING) in attacher.own
