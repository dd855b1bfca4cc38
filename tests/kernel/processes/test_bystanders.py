"""Processes that are not traced: none of the probes that count is in them, even where they map the same libc."""

from __future__ import annotations

import signal
from pathlib import Path

from conftest import LiveTarget
from live_refleak import live_refleak
from text_in_memory import Change, changed_text

BREAKPOINT = 0xCC


def test_attach_leaves_others_untouched(live_target: LiveTarget, tmp_path: Path) -> None:
    with live_target("noise_target") as bystander, live_target("attach") as target:
        with live_refleak(tmp_path / "report", "-p", target.pid) as refleak:
            refleak.wait_until_attached()
            assert {change.value for change in changed_text(target.pid)} >= {BREAKPOINT}
            assert _own(changed_text(bystander.pid), changed_text(target.pid)) == []
            refleak.signal(signal.SIGINT)
            refleak.end().check_whole()


def test_launch_puts_only_the_places_of_forks_and_execs_in_others(
    live_target: LiveTarget, targets: Path, tmp_path: Path
) -> None:
    with live_target("noise_target") as bystander:
        with live_refleak(tmp_path / "report", "--exec", targets / "noise_target") as refleak:
            assert refleak.line() == b"ready\n"
            shared = _own(changed_text(bystander.pid), changed_text(refleak.child()))
            assert len(shared) <= 6, shared
            assert len(changed_text(refleak.child())) >= len(shared) + 12
            refleak.tell(b"x")
            refleak.end().check_whole()


def _own(others: list[Change], target: list[Change]) -> list[Change]:
    """Return what this run put into another process: what both have. Other tracers may work at the same time."""
    return sorted(set(others) & set(target))
