"""A process whose first thread has ended: the kernel takes its breakpoints out when a probe of another process goes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tracer
from tracer.capture import kernel_start
from tracer.capture.follower import Follower
from tracer.kernel import bpf
from tracer.procfs.process import is_running

pytestmark = pytest.mark.needs("uprobe_multi")

QUIET = tracer.TraceOptions(user="root")
HEADLESS = "process that ran on without all of its probes, when its first thread had ended before others"


def attach_and_detach(follower: Follower, pid: int) -> None:
    """Put a probe into this process at each place of a process's, and take them out."""
    attacher = follower._prober._attacher
    program = attacher._programs.probes.get("on_entry")
    assert program is not None
    for binary in follower._prober.linked(pid):
        places = sorted({placement.file_offset for _, placement in binary.placements})
        if places:
            cookies = [0] * len(places)
            os.close(bpf.link_uprobes(program, binary.open_path, places, cookies, os.getpid(), at_return=False))


@pytest.mark.parametrize("others", [False, True])
def test_probes_that_go_are_noticed(
    targets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: bool
) -> None:
    look_after, go = Follower.look_after, tmp_path / "go"

    def while_alone(follower: Follower) -> None:
        look_after(follower)
        pid = next(iter(follower._prober._linked))
        if (tmp_path / "alone").exists() and not is_running(pid, pid) and not go.exists():
            if others:
                attach_and_detach(follower, pid)
            go.touch()

    monkeypatch.setattr(kernel_start, "has_events", lambda *_: False)
    monkeypatch.setattr(Follower, "look_after", while_alone)
    report = tracer.trace([str(targets / "first_leaves"), str(tmp_path)], QUIET)
    assert (report.exit_status, list(report.errors)) == (0, [])
    lost = {loss.reason for loss in report.findings.losses}
    assert lost == {HEADLESS} if others else lost <= {HEADLESS}  # there may be other tracers beside this one
