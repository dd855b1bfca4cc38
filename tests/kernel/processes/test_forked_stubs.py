"""Children of a program whose stubs begin with a nop of 5 bytes, followed or not, and made without libc's fork()."""

from __future__ import annotations

import pytest
from conftest import Refleak


@pytest.mark.parametrize("follow", ["--follow-forks", "--no-follow-forks"])
def test_children_live_on(refleak: Refleak, follow: str) -> None:
    """Linux 6.18 makes a call of such a nop, to a page that children do not have."""
    run = refleak(follow, "--refs-only", target=("old_stubs_fork",))
    assert (run.stdout, run.status) == ("0\n", 0)
    [row] = [row for row in run.report["totals"]["references"] if row["type"] == "thing"]
    assert row["gets"] == row["puts"] == 101 + 6 * 3
    assert run.report["errors"] == []
