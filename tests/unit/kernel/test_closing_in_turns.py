"""Events of a run that has ended are closed when no other run needs the kernel's lock, then one a second."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import cast

import pytest

from tracer.kernel import closer
from tracer.kernel.event_turns import EventTurns
from tracer.kernel.uprobe_events import UprobeEvents

PAST = 0.0
"""A deadline of the monotonic clock that is over."""


class Events:
    """What a run has of tracefs: turns, by a file that others lock."""

    def __init__(self, path: Path) -> None:
        self.turns = EventTurns(os.open(path, os.O_RDONLY), None)


def pauses(monkeypatch: pytest.MonkeyPatch, path: Path, deadline: float) -> list[float]:
    """Close three files in turns; return how long is waited after each."""
    fds, waited = [os.open(os.devnull, os.O_RDONLY) for _ in range(3)], []
    monkeypatch.setattr(time, "sleep", waited.append)
    closer._close_in_turns(cast(UprobeEvents, Events(path)), fds, deadline)
    monkeypatch.undo()
    for fd in fds:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)
    return waited


@pytest.mark.parametrize("deadline", [PAST, time.monotonic() + 1000])
def test_where_nobody_needs_the_lock_the_next_comes_soon(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, deadline: float
) -> None:
    """When ten minutes were over each run closed one event a second, while it kept all others from closing theirs: a
    hundred runs took an hour to go, and new ones waited ten seconds each."""
    (tmp_path / "events").touch()
    assert sum(pauses(monkeypatch, tmp_path / "events", deadline)) < 0.1


def test_where_another_run_needs_it_after_ten_minutes_one_a_second_is_closed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "events"
    path.touch()
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        assert min(pauses(monkeypatch, path, PAST)) >= 1
