"""Whether a machine is busy, as /proc/loadavg has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracer.procfs import busy


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.20 0.18 0.12 1/80 11206", False), ("0.20 0.18 0.12 7/80 11206", False), ("0.20 0.18 0.12 8/80 11206", True),
     ("", False), ("a b c d/e", False)],
)  # fmt: skip
def test_more_than_two_for_a_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: bool
) -> None:  # fmt: skip
    monkeypatch.setattr(busy.os, "sched_getaffinity", lambda _: {0, 1, 2})
    (tmp_path / "loadavg").write_text(text)
    assert busy.is_busy(tmp_path / "loadavg") == expected
    assert not busy.is_busy(tmp_path / "nothing")
