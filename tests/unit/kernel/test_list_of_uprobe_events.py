"""Uprobe events where tracefs is there and its files cannot be opened."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tracer.kernel import uprobe_events
from tracer.kernel.uprobe_events import UprobeEvents


def test_where_the_kernel_is_locked_down_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command ended with "Operation not permitted: uprobe_events", doctor as well."""

    def refuses(_events: UprobeEvents, _name: str, _flags: int) -> int:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), "uprobe_events")

    root = os.open(tmp_path, os.O_PATH)
    monkeypatch.setattr(uprobe_events, "_open_tracefs", lambda: root)
    monkeypatch.setattr(UprobeEvents, "_open", refuses)
    events = UprobeEvents()
    assert not events.can_be_had
    assert not events.are_many
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(root)
