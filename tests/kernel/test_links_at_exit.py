"""Who is about to exit need not wait until the kernel has let go of the links of a target that has ended."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from bpf_residue import Residue
from conftest import LiveTarget

from tracer.pipeline.trace import Trace
from tracer.pipeline.trace_options import TraceOptions

QUIET = TraceOptions(user="root")


def links() -> int:
    """Return how many BPF links this process has open."""
    count = 0
    for place in Path("/proc/self/fd").iterdir():
        if place.is_symlink() and "bpf" in str(place.readlink()) and "link" in str(place.readlink()):
            count += 1
    return count


def in_process_of_its_own(work: Callable[[], int]) -> int:
    """Return what `work` returned in a forked process, which has ended: a small number."""
    said, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(said)
            os.write(tell, str(work()).encode())
        finally:
            os._exit(0)
    os.close(tell)
    with open(said, "rb") as file:  # to its end: whoever has the links open does not keep others waiting
        answer = file.read()
    os.waitpid(pid, 0)
    return int(answer)


def test_those_of_a_target_that_has_ended_are_left_open_and_then_closed(targets: Path) -> None:
    def work() -> int:
        trace = Trace.launched([str(targets / "clean"), "quiet"], QUIET)
        trace.begin()
        trace.run()
        trace.close(exits=True)
        return links()

    residue = Residue()
    assert in_process_of_its_own(work) > 0
    assert residue.left() == []


def test_who_goes_on_closes_them(targets: Path) -> None:
    def work() -> int:
        trace = Trace.launched([str(targets / "clean"), "quiet"], QUIET)
        trace.begin()
        trace.run()
        trace.close()
        return links()

    assert in_process_of_its_own(work) == 0


def test_a_target_that_goes_on_is_rid_of_them_first(live_target: LiveTarget) -> None:
    def work() -> int:
        trace = Trace.attached((process.pid,), QUIET)
        trace.begin()
        assert links() > 0
        trace.stop()
        trace.run()
        trace.close(exits=True)
        return links()

    with live_target("attach") as process:
        assert in_process_of_its_own(work) == 0
