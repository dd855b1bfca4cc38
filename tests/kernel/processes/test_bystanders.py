"""Processes that are not traced have no breakpoint, even where they map the same libc, and forks are followed.

In the tests of forks the target has a libc of its own, a copy: no other trace has a breakpoint in that.
"""

from __future__ import annotations

import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from bpf_residue import owners_of
from conftest import LiveTarget
from live_refleak import PATIENCE_SECONDS, LiveRefleak, live_refleak, take_turns, wait_for
from text_in_memory import changed_text
from uprobe_list import EVENTS, tell

HEAP = ("malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "mmap", "munmap", "mremap")


def mapped_libc(pid: int) -> str:
    return next(line.split()[5] for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if "libc.so" in line)


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


@pytest.fixture
def libc(live_target: LiveTarget, tmp_path: Path) -> Path:
    """Return a copy of libc, in a folder that LD_LIBRARY_PATH can name."""
    (tmp_path / "lib").mkdir()
    with live_target("attach") as any_program:
        return Path(shutil.copy(mapped_libc(any_program.pid), tmp_path / "lib" / "libc.so.6"))


@contextmanager
def forking(libc: Path, targets: Path, tmp_path: Path) -> Iterator[LiveRefleak]:
    """Trace a program with this libc that forks all the time, from when its children are followed."""
    command = ["/usr/bin/env", f"LD_LIBRARY_PATH={libc.parent}", targets / "paces", "forks"]
    with live_refleak(tmp_path / "report", "--exec", *command) as refleak:
        assert refleak.line() == b"ready\n"
        take_turns(refleak)
        yield refleak


def own_events(refleak: LiveRefleak) -> list[str]:
    """Return what the tracer has in tracefs: the names of its groups have its number."""
    events = EVENTS.read_text().splitlines()
    return [line for line in events if f":refleak_{refleak.pid}_" in line]


def wait_for_names_to_go(refleak: LiveRefleak) -> None:
    """They go when all events are closed, one by one: the patience is for the next one. What has ended gives the way to
    other runs that use events, whoever started these."""
    began, before = time.monotonic(), open_files(own_events(refleak))
    while names := own_events(refleak):
        left = open_files(names)
        if left < before or others_use_events(refleak):
            began = time.monotonic()
        before = left
        assert time.monotonic() - began < PATIENCE_SECONDS, f"waited in vain for {names} to go"
        select.select([], [], [], 0.02)


def open_files(names: list[str]) -> int:
    count = 0
    for number in {number for name in names for number in owners_of(name)}:
        with suppress(OSError):
            count += len(list(Path(f"/proc/{number}/fd").iterdir()))
    return count


def others_use_events(refleak: LiveRefleak) -> bool:
    """Tell whether another run has names in tracefs: it lives, or what closes its events does."""
    names = EVENTS.read_text().splitlines()
    groups = (numbers for numbers in map(owners_of, names) if str(refleak.pid) not in numbers)
    return any(Path(f"/proc/{number}").exists() for numbers in groups for number in numbers)


def test_nobody_else_has_a_breakpoint_while_forks_are_followed(libc: Path, targets: Path, tmp_path: Path) -> None:
    with forking(libc, targets, tmp_path) as refleak:
        variables = {"LD_LIBRARY_PATH": str(libc.parent)}
        other = subprocess.Popen([targets / "attach"], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"ready\n"
            assert mapped_libc(other.pid) == mapped_libc(refleak.child()) == str(libc)
            assert [change for change in changed_text(other.pid) if change.path == str(libc)] == []
            other.kill()
        assert probed(refleak.child()) == set(HEAP)
        refleak.tell(b"x")
        assert refleak.end().status == 0


def test_a_translator_beside_it_lives(libc: Path, targets: Path, tmp_path: Path) -> None:
    with forking(libc, targets, tmp_path) as refleak:
        translated = subprocess.run(
            ["/usr/bin/valgrind", "-q", "/bin/sh", "-c", "(exit 3); /bin/true; /bin/true && exit 7"],
            env={"LD_LIBRARY_PATH": str(libc.parent)}, capture_output=True, timeout=300,
        )  # fmt: skip
        assert translated.returncode == 7, translated.stderr
        refleak.tell(b"x")
        assert refleak.end().status == 0


def test_names_in_tracefs_go_at_the_end(libc: Path, targets: Path, tmp_path: Path) -> None:
    with forking(libc, targets, tmp_path) as refleak:
        files = {re.sub(r".*/fd/(\d+):.*", r"\1", line) for line in own_events(refleak)}
        assert str(libc) in {str(Path(f"/proc/{refleak.pid}/fd/{number}").readlink()) for number in files}
        refleak.tell(b"x")
        assert refleak.end().status == 0
        wait_for_names_to_go(refleak)


def test_names_in_tracefs_go_when_it_is_interrupted(libc: Path, targets: Path, tmp_path: Path) -> None:
    with forking(libc, targets, tmp_path) as refleak:
        assert own_events(refleak)
        refleak.signal(signal.SIGINT)
        refleak.tell(b"x")
        refleak.end()
        wait_for_names_to_go(refleak)


def test_names_in_tracefs_go_when_it_is_killed(libc: Path, targets: Path, tmp_path: Path) -> None:
    with forking(libc, targets, tmp_path) as refleak:
        target = refleak.child()
        assert own_events(refleak)
        refleak.signal(signal.SIGKILL)
        refleak.process.wait()
        wait_for_names_to_go(refleak)
        wait_for(lambda: not changed_text(target), "the breakpoints to go")
        refleak.tell(b"x")
        assert b" turns, longest " in refleak.line()


def test_names_of_a_dead_run_go_at_the_next_start(libc: Path, targets: Path, tmp_path: Path) -> None:
    left = "refleak_4194398_4194399_0123456789abcdef/at1"
    tell(f"p:{left} {libc}:0x1000\n")
    with forking(libc, targets, tmp_path) as refleak:
        assert left not in EVENTS.read_text()
        refleak.tell(b"x")
        refleak.end()
