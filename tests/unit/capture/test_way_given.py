"""A run that begins gives those that have ended the way, where many of them have events to close."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tracer.capture import kernel_start
from tracer.capture.capture_options import CaptureOptions
from tracer.kernel.uprobe_events import UprobeEvents


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(("closing", "waited", "is_told"), [
    (lambda now: 8, 0.0, False),
    (lambda now: 9, 10.0, True),
    (lambda now: 33, 60.0, True),
    (lambda now: 12 - now, 4.0, True),
])  # fmt: skip
def test_it_waits_while_many_do_for_some_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, closing: Callable[[float], float], waited: float, is_told: bool
) -> None:
    clock, told = Clock(), list[float]()
    monkeypatch.setattr(kernel_start, "time", clock)
    monkeypatch.setattr(UprobeEvents, "look", lambda events: setattr(events, "runs_that_close", closing(clock.now)))
    options = CaptureOptions(tmp_path, on_give_way=lambda: told.append(clock.now))
    events = UprobeEvents()
    assert kernel_start.give_way(options, events)
    assert (clock.now, told) == (waited, [0.0] * is_told)
    assert events.close()


@pytest.mark.parametrize(("closing", "has_links", "waited", "may_add"), [
    (8, True, 0.0, True), (9, True, 0.0, False), (33, True, 0.0, False), (9, False, 10.0, True),
])  # fmt: skip
def test_what_has_no_children_waits_for_nobody_and_adds_to_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, closing: int, has_links: bool, waited: float, may_add: bool
) -> None:
    """Where the kernel has links of many places: perf events of its own would be closed one by one, too."""
    clock = Clock()
    monkeypatch.setattr(kernel_start, "time", clock)
    monkeypatch.setattr(kernel_start, "has_uprobe_multi", lambda: has_links)
    monkeypatch.setattr(UprobeEvents, "look", lambda events: setattr(events, "runs_that_close", closing))
    events = UprobeEvents()
    assert kernel_start.give_way(CaptureOptions(tmp_path, may_fork=lambda: False), events) == may_add
    assert clock.now == waited
    assert events.close()
