"""A process that goes on while its probes are exchanged for others: what it makes unseen is no double free.

Of a maker whose hold had ended the links no longer counted, and the events came one by one. Seen on a busy machine, in
`apt-config dump`: three double frees that were none, in a report that said that it was complete.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from traced_report import HOLD_EXPIRED, WENT_ON

import tracer
from tracer.capture import kernel_start
from tracer.capture.follower import Follower
from tracer.kernel.process_events import ProcessEvents
from tracer.model.records import ControlKind
from tracer.probing.prober import Prober

pytestmark = pytest.mark.needs("uprobe_multi")

TURNS = 3
QUIET = tracer.TraceOptions(user="root", reachability=False)


class SlowTracer:
    """Gives the maker its events when its child has ended. The maker takes it that refleak is gone, and goes on,
    `before` that or in the midst of it, and makes its block when the first event is there."""

    def __init__(self, folder: Path, *, before: bool) -> None:
        self._folder, self._before = folder, before
        self.changed_over: list[int] = []
        self._child_ended = False

    def _let_maker_go(self, events: ProcessEvents) -> None:
        while not (self._folder / "forked").exists():
            events._shared["heartbeat_ns"] = 0

    def _let_maker_make(self) -> None:
        (self._folder / "make").touch()
        while not (self._folder / "made").exists():
            os.sched_yield()

    def install(self, patch: pytest.MonkeyPatch) -> None:
        handle, change_over, open_event = Follower._handle, Prober.change_over, ProcessEvents.open

        def in_order(follower: Follower, control: np.void) -> None:
            if control["kind"] == ControlKind.FORKS and not self._child_ended:
                follower._waiting.append(control)
                follower._waiting_pids[int(control["pid"])] += 1
                return
            handle(follower, control)
            self._child_ended |= control["kind"] == ControlKind.EXIT

        def late(prober: Prober, pid: int, *rest: Any) -> bool:
            events = prober._attacher.events
            events._programs.prepare_events()
            events._programs.wait_for_events(120)
            events._children_seconds = 99
            assert prober.can_change_over(pid)
            if self._before:
                self._let_maker_go(events)
            self.changed_over.append(pid)
            early = change_over(prober, pid, *rest)
            self._let_maker_make()
            (self._folder / "drop").touch()
            return early

        def slowly(events: ProcessEvents, pid: int, *rest: Any) -> list[int]:
            opened = open_event(events, pid, *rest)
            if pid in self.changed_over:
                self._let_maker_go(events)
                self._let_maker_make()
            return opened

        patch.setattr(kernel_start, "is_busy", lambda: False)
        patch.setattr(Follower, "_handle", in_order)
        patch.setattr(Prober, "change_over", late)
        patch.setattr(ProcessEvents, "open", slowly)


@pytest.mark.parametrize("before", [True, False])
def test_no_block_is_missed_in_silence(
    targets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    wanted = set() if before else {WENT_ON}
    for turn in range(TURNS):
        folder = tmp_path / f"{turn}"
        folder.mkdir()
        slow = SlowTracer(folder, before=before)
        with monkeypatch.context() as patch:
            slow.install(patch)
            report = tracer.trace([str(targets / "early_maker"), str(folder)], QUIET)
        assert len(slow.changed_over) == 1
        assert (report.exit_status, list(report.errors)) == (0, [])
        lost = {loss.reason for loss in report.findings.losses}
        if lost == wanted:
            return
        assert lost <= wanted | {HOLD_EXPIRED, WENT_ON}  # on a busy machine, and said
    raise AssertionError(lost)
