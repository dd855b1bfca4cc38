"""Processes that are not traced: no probe that counts is in them, even where they map the same libc.

The places of forks, execs and the loader have a breakpoint in every process while forks are followed.
"""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from conftest import LiveTarget
from live_refleak import live_refleak
from text_in_memory import changed_text

HEAP = ("malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "mmap", "munmap", "mremap")


def probed(pid: int) -> set[str]:
    """Return the functions of libc that count allocations and have a changed byte in a process."""
    changes = [change for change in changed_text(pid) if "libc.so" in change.path]
    if not changes:
        return set()
    listed = subprocess.run(["nm", "-D", "-S", "--defined-only", changes[0].path], capture_output=True, text=True)
    ranges = {}
    for line in listed.stdout.splitlines():
        fields = line.split()
        if len(fields) == 4 and (name := fields[3].partition("@")[0]) in HEAP:
            ranges[name] = range(int(fields[0], 16), int(fields[0], 16) + int(fields[1], 16))
    assert set(ranges) == set(HEAP)
    return {name for name, place in ranges.items() if any(change.file_offset in place for change in changes)}


def test_attach_leaves_others_untouched(live_target: LiveTarget, tmp_path: Path) -> None:
    with live_target("noise_target") as bystander, live_target("attach") as target:  # noqa: SIM117
        with live_refleak(tmp_path / "report", "-p", target.pid) as refleak:
            refleak.wait_until_attached()
            assert probed(target.pid) == set(HEAP)
            assert probed(bystander.pid) == set()
            refleak.signal(signal.SIGINT)
            refleak.end().check_whole()


def test_launch_leaves_others_unprobed(live_target: LiveTarget, targets: Path, tmp_path: Path) -> None:
    with live_target("noise_target") as bystander:  # noqa: SIM117
        with live_refleak(tmp_path / "report", "--exec", targets / "noise_target") as refleak:
            assert refleak.line() == b"ready\n"
            assert probed(refleak.child()) == set(HEAP)
            assert probed(bystander.pid) == set()
            refleak.tell(b"x")
            refleak.end().check_whole()
