"""A run's names in tracefs: made, and taken away again without touching what is not its own or in use."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tracer.binaries.file_version import FileVersion, version_of
from tracer.kernel import uprobe_events
from tracer.kernel.uprobe_events import Place, UprobeEvents

OTHERS = "p:theirs/probe /bin/true:0x00001000\np:refleak_4194399_in_use/at1 /proc/self/fd/9:0x0000000000001000\n"
DEAD = "r:refleak_4194398_dead/at1 /proc/self/fd/9:0x0000000000001000\n"


class FakeTracefs:
    """A folder that stands in for tracefs, and what was written to its list of events."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.said = folder, list[str]()
        (folder / "uprobe_events").write_text(OTHERS + DEAD)
        (folder / "uprobe_profile").touch()

    def write(self, _: int, command: bytes) -> int:
        text = command.decode()
        self.said.append(text)
        listed = self.folder / "uprobe_events"
        if text.startswith("-:"):
            if "in_use" in text:
                raise OSError(errno.EBUSY, "busy")
            kept = [line for line in listed.read_text().splitlines() if text[2:] != line.split()[0][2:]]
            listed.write_text("".join(f"{line}\n" for line in kept))
        else:
            listed.write_text(listed.read_text() + text + "\n")
            made = self.folder / "events" / text.split()[0][2:]
            made.mkdir(parents=True)
            (made / "id").write_text("1234\n")
        return len(command)


@pytest.fixture
def tracefs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTracefs:
    fake = FakeTracefs(tmp_path)
    monkeypatch.setattr(uprobe_events, "_MOUNTED", (str(tmp_path),))
    monkeypatch.setattr(os, "write", fake.write)
    return fake


def test_a_start_removes_what_is_dead_and_nothing_else(tracefs: FakeTracefs) -> None:
    events = UprobeEvents()
    assert sorted(tracefs.said) == ["-:refleak_4194398_dead/at1", "-:refleak_4194399_in_use/at1"]
    assert (tracefs.folder / "uprobe_events").read_text() == OTHERS
    assert events.close()


def test_what_is_still_being_closed_is_left_alone(tracefs: FakeTracefs) -> None:
    listed = tracefs.folder / "uprobe_events"
    listed.write_text(f"p:refleak_4194398_{os.getppid()}_0123/at1 /bin/true:0x00001000\n")
    events = UprobeEvents()
    assert not tracefs.said
    assert events.close()


@pytest.mark.parametrize(
    ("sees_all", "lives", "is_kept"), [(True, False, False), (True, True, True), (False, False, True)]
)
def test_numbers_of_another_pid_namespace_are_not_taken_for_ones_own(
    tracefs: FakeTracefs, monkeypatch: pytest.MonkeyPatch, sees_all: bool, lives: bool, is_kept: bool
) -> None:
    """In a container refleak is process 1, which is there outside too: its names stayed for ever."""
    own = 0xEFFFFFFC if sees_all else 0xF0000002
    namespaces = {"self": own, str(os.getppid()): 0xF0000001 if lives else own}
    monkeypatch.setattr(uprobe_events, "_namespace", lambda process: namespaces.get(process, own))
    name = "refleak_1_15_0123nf0000001/at1"
    (tracefs.folder / "uprobe_events").write_text(f"p:{name} /bin/true:0x00001000\n")
    events = UprobeEvents()
    assert tracefs.said == ([] if is_kept else [f"-:{name}"])
    assert events.close()


def test_a_run_that_ends_waits_for_one_that_makes_events(tracefs: FakeTracefs) -> None:
    ends, starts = UprobeEvents(), UprobeEvents()
    assert starts.turns.claim()
    assert starts.turns.claim()
    began = time.monotonic()
    with ends.turns.turn(began + 0.05):
        assert time.monotonic() >= began + 0.05
    starts.turns.release()
    with ends.turns.turn(time.monotonic() + 5.0):
        assert time.monotonic() < began + 5.0
        assert not starts.turns.claim(0.05)
    assert starts.turns.claim(5.0)
    assert ends.close()
    assert starts.close()


def test_runs_that_end_close_one_after_the_other(tracefs: FakeTracefs) -> None:
    first, second = UprobeEvents(), UprobeEvents()
    with first.turns.queue() as is_first:
        assert is_first
        with second.turns.queue(time.monotonic() + 0.05) as is_next:
            assert not is_next
    with second.turns.queue() as is_next:
        assert is_next
    assert first.close() and second.close()


def test_names_are_left_while_a_run_that_is_over_has_some(tracefs: FakeTracefs) -> None:
    """What it made and another run has taken over that one removes at its end, which has no names of its own."""
    events, listed = UprobeEvents(), tracefs.folder / "uprobe_events"
    listed.write_text(f"p:refleak_{os.getppid()}_0a/at1 /bin/true:0x1\n")
    assert not events.are_left
    listed.write_text("p:refleak_4194398_0a/at1 /bin/true:0x1\n")
    assert events.are_left
    listed.write_text(f"p:{events.group}/at1 /bin/true:0x1\n")
    assert events.are_left
    assert events.close()


def test_runs_are_counted_that_have_ended_and_have_events(tracefs: FakeTracefs) -> None:
    own, parent, gone = os.getpid(), os.getppid(), 4194398
    groups = (f"refleak_{gone}_{parent}_0a", f"refleak_{own}_{parent}_0b", f"refleak_{gone}_{parent}_0cn1")
    lines = [f"p:{group}/at{number} /bin/true:0x{number}\n" for group in groups for number in (1, 2)]
    (tracefs.folder / "uprobe_events").write_text("".join(lines))
    events = UprobeEvents()
    assert events.runs_that_close == 1
    assert events.close()


def test_an_event_is_made_and_removed(tracefs: FakeTracefs) -> None:
    events = UprobeEvents()
    tracefs.said.clear()
    assert events.add("/proc/self/fd/5", 0x123, at_return=True) == 1234
    assert tracefs.said == [f"r:{events.group}/at1 /proc/self/fd/5:0x123"]
    assert events.group.startswith(f"refleak_{os.getpid()}_")
    assert events.close()
    removed = tracefs.said[1:]
    assert removed.count(f"-:{events.group}/at1") == 1
    assert set(removed) == {f"-:{events.group}/at1", "-:refleak_4194399_in_use/at1"}
    assert (tracefs.folder / "uprobe_events").read_text() == OTHERS
    assert events.descriptors == ()


def test_the_next_run_knows_an_event_by_its_place(tracefs: FakeTracefs, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"code")
    version = version_of(os.open(file, os.O_RDONLY))
    first = UprobeEvents()
    first.are_outlived_by(os.getpid(), os.getppid())
    for at_return in (False, True):
        first.add("/proc/self/fd/5", 0x123, at_return=at_return, version=version)
    first.add("/proc/self/fd/5", 0x124)
    names = [command.split()[0][2:] for command in tracefs.said if not command.startswith("-")]
    second = UprobeEvents()
    assert second.others == 4
    found = second.of_others(version)
    assert list(found) == names[:2]
    assert [(place.file_offset, place.at_return) for place in found.values()] == [(0x123, False), (0x123, True)]
    assert second.number_of(names[0]) == 1234
    assert not second.of_others(version)  # once
    assert max(map(len, names[0].split("/"))) < 64  # MAX_EVENT_NAME_LEN of kernel/trace/trace.h


class Clock:
    """Time that passes when somebody sleeps, and what happens after some of it."""

    def __init__(self, after_seconds: float, act: Callable[[], object]) -> None:
        self.now, self._after, self._act = 1000.0, 1000.0 + after_seconds, act

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        before, self.now = self.now, self.now + seconds
        if before < self._after <= self.now:
            self._act()


def test_the_longest_name_is_short_enough() -> None:
    version = FileVersion(0xFFFF_FFFF, (1 << 64) - 1, 1 << 40, 0, 0, b"digest")
    name = f"at1000_{Place.of(version, 0xFFFF_FFFF, b'code', at_return=True).name}"
    assert len(name) < 64


@pytest.mark.parametrize(
    ("closed_after", "code", "waits", "waited", "found"),
    [
        (0.2, b"other", True, 0.2, set()),
        (100, b"other", True, uprobe_events._STALE_SECONDS, {0x123}),
        (100, b"other", False, 0, {0x123}),
        (100, b"same", True, 0, set()),
    ],
)
def test_events_of_what_a_file_held_before_are_waited_for_where_it_has_other_code(
    tracefs: FakeTracefs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *,
    closed_after: float, code: bytes, waits: bool, waited: float, found: set[int],
) -> None:  # fmt: skip
    file = tmp_path / "file"
    file.write_bytes(b"code")
    fd = os.open(file, os.O_RDONLY)
    first = UprobeEvents()
    first.are_outlived_by(os.getpid(), os.getppid())
    first.add("/proc/self/fd/5", 0x123, version=version_of(fd), code=b"same")
    second = UprobeEvents()
    file.write_bytes(b"other code")
    clock = Clock(closed_after, first.remove_all)
    monkeypatch.setattr(uprobe_events, "time", clock)
    assert second.former_of_others(version_of(fd), {0x123, 0x124}, lambda _: code, waits=waits) == found
    assert second.of_others(version_of(fd)) == {}
    assert clock.now - 1000 == pytest.approx(waited, abs=0.03)


def test_one_in_use_is_left_to_the_process_that_outlives_this_one(
    tracefs: FakeTracefs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uprobe_events, "_PATIENCE_SECONDS", 0.0)
    events = UprobeEvents()
    events.group = "refleak_4194399_in_use"
    assert not events.close()
    assert events.descriptors != ()


def test_without_tracefs_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uprobe_events, "_MOUNTED", ())
    monkeypatch.setattr(uprobe_events, "_mount_detached", lambda: None)
    events = UprobeEvents()
    assert not events.can_be_had
    assert events.close()
