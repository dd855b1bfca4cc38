"""What cannot be understood of a target is left out and counted, and whoever is held goes on."""

from __future__ import annotations

import errno
import signal
import struct
import sys
import time
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from built_program import build

from tracer.binaries.open_binaries import Binaries
from tracer.binaries.start_up import start_up_binaries
from tracer.capture.follower import Follower
from tracer.elf.image import Image
from tracer.errors import CannotRead, ProgramRefused, UnsuitableTarget
from tracer.interpreters.python.runtimes import PythonRuntimes
from tracer.kernel.releases import Releases
from tracer.mishaps import REASON, TOO_SLOW, Mishaps
from tracer.model import records
from tracer.model.records import ControlKind
from tracer.probing.prober import Prober
from tracer.probing.site_finder import FoundSites
from tracer.spaces.processes import ProcessTable


def test_an_error_is_counted_and_the_first_is_named() -> None:
    mishaps = Mishaps()
    with mishaps.attempt():
        struct.unpack("<I", b"")
    with mishaps.attempt():
        raise UnsuitableTarget("no ELF file")
    (loss,) = mishaps.losses
    assert loss.count == 2
    assert loss.reason == f"{REASON} (first: struct.error)"
    assert "report it" in loss.remedy


def test_the_place_is_refleaks_own() -> None:
    mishaps = Mishaps()
    with mishaps.attempt():
        Image(None)  # type: ignore[arg-type]
    assert mishaps.first.startswith("TypeError in elf/image.py:")


def test_nothing_is_lost_where_nothing_happened() -> None:
    mishaps = Mishaps()
    with mishaps.attempt():
        pass
    assert mishaps.losses == ()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), ProgramRefused("refused", "log")])
def test_what_the_user_must_hear_of_passes(error: BaseException) -> None:
    mishaps = Mishaps()
    with pytest.raises(type(error)), mishaps.attempt():
        raise error
    assert mishaps.losses == ()


def test_an_attempt_that_goes_on_is_given_up_when_the_trace_is_to_end() -> None:
    mishaps = Mishaps()
    mishaps.hurry(0.01)
    try:
        with mishaps.attempt():
            while True:
                time.monotonic()
    finally:
        mishaps.calm()
    assert mishaps.losses[0].reason == f"{REASON} (first: {TOO_SLOW})"


def test_short_attempts_go_on_when_the_trace_is_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tick of the clock within one says nothing: only its own length does."""
    seconds = [0.0]
    monkeypatch.setattr("tracer.mishaps.time", SimpleNamespace(monotonic=lambda: seconds[0]))
    mishaps = Mishaps()
    mishaps.hurry(100)
    try:
        for length in (99, 99, 101, 99):
            with mishaps.attempt():
                seconds[0] += length
                signal.raise_signal(signal.SIGALRM)
    finally:
        mishaps.calm()
    assert mishaps.count == 1
    assert mishaps.first == TOO_SLOW


@pytest.mark.parametrize("event", ["call", "return"])
@pytest.mark.parametrize("error", [None, ValueError()])
def test_what_is_to_be_given_up_is_so_within_its_attempt_only(event: str, error: Exception | None) -> None:
    """At each step into an attempt and out of it there is an alarm; one that raised there ended refleak."""

    def alarm(frame: FrameType, what: str, _: object) -> None:
        if what == event and Path(frame.f_code.co_filename).name in ("mishaps.py", "contextlib.py", "errors.py"):
            signal.raise_signal(signal.SIGALRM)

    mishaps = Mishaps()
    try:
        with mishaps.attempt():
            mishaps.hurry(1000)
            mishaps.__dict__.update(_patience=1e-9)  # no alarm comes by itself
            sys.setprofile(alarm)
            if error is not None:
                raise error
        sys.setprofile(None)
        assert mishaps.count == (error is not None)
    finally:
        sys.setprofile(None)
        mishaps.calm()


def test_an_attempt_with_limits_of_its_own_goes_on_when_the_trace_is_to_end() -> None:
    """Not so those within it."""
    mishaps, is_done = Mishaps(), False
    mishaps.hurry(0.01)
    try:
        with mishaps.attempt(hurried=False):
            until = time.monotonic() + 0.1
            while time.monotonic() < until:
                pass
            assert mishaps.losses == ()
            with mishaps.attempt():
                while True:
                    time.monotonic()
            is_done = True
    finally:
        mishaps.calm()
    assert is_done
    assert [loss.count for loss in mishaps.losses] == [1]


def fake_follower(handler: Any, mishaps: Mishaps) -> tuple[Follower, Any]:
    shared = np.zeros(1, records.SHARED)
    maps: Any = SimpleNamespace(fds={"PROCESSES": -1, "HOLDS": -1}, view=lambda *_: shared)
    spaces: Any = SimpleNamespace(refresh=handler)
    nothing: Any = SimpleNamespace(listeners=())
    follower = Follower(
        maps, Binaries(), nothing, spaces, nothing, (), ProcessTable(), lambda ns: ns, mishaps,
        SimpleNamespace(held=handler), SimpleNamespace(held=handler), Releases(maps), can_hold=True,
    )  # fmt: skip
    return follower, shared


@pytest.mark.parametrize("error", [OverflowError("int too big"), RecursionError(), CannotRead("gone"), MemoryError()])
def test_who_is_held_goes_on_after_any_error(error: Exception) -> None:
    def fails(*_: object) -> None:
        raise error

    mishaps = Mishaps()
    follower, shared = fake_follower(fails, mishaps)
    control = np.zeros(1, records.CONTROL)
    control["kind"], control["pid"], control["tid"], control["ticket"] = int(ControlKind.MAPPED), 7, 7, 11
    follower.handle([control.tobytes()])
    assert mishaps.count == 1
    assert shared["released"][0][7 % records.HOLD_SLOTS] == 11


def test_a_binary_without_sites_keeps_its_holds_and_its_rows(tmp_path: Path) -> None:
    def fails(_: Image) -> Any:
        raise TypeError

    binary = Binaries().open([str(build(tmp_path, "int main(void) { return 0; }", "-static"))], "program")
    assert binary is not None
    installed = []
    mishaps = Mishaps()
    nothing: Any = SimpleNamespace(count=0)
    finder: Any = SimpleNamespace(find=fails)
    rows: Any = SimpleNamespace(install=installed.append)
    prober = Prober(finder, nothing, rows, nothing, mishaps, follow=True)
    prober.prepare(binary)
    assert (mishaps.count, installed) == (1, [binary])
    prober.check("program", [binary])  # it still has the holds of a libc


def test_a_script_that_is_its_own_interpreter_has_no_binaries(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f"#!{script}\n")
    assert start_up_binaries(Binaries(), str(script), "script") == []


def test_a_script_of_a_script_of_a_program_has_binaries(tmp_path: Path) -> None:
    (tmp_path / "outer").write_text(f"#!{tmp_path}/inner\n")
    (tmp_path / "inner").write_text("#!/bin/true\n")
    assert start_up_binaries(Binaries(), str(tmp_path / "outer"), "outer")[0].path == "/bin/true"


def test_a_version_at_the_end_of_a_file_is_no_python() -> None:
    symbols = SimpleNamespace(mentions=lambda _: True)
    binary: Any = SimpleNamespace(
        id=1, path="python", names=symbols, link_address=lambda _: 0x1000, file_offset=lambda _: 98,
        image=SimpleNamespace(data=memoryview(bytes(100))),
    )  # fmt: skip
    maps: Any = SimpleNamespace(view=lambda _, dtype, count: np.zeros(count, dtype))
    mishaps = Mishaps()
    runtimes = PythonRuntimes(maps, mishaps)
    assert not runtimes.is_in(binary)
    assert mishaps.losses == ()
    assert "no frames of Python" in runtimes.notes[0]


@pytest.mark.parametrize("step", ["attach_unwinders", "attach_sites"])
def test_a_process_that_gets_no_probes_for_want_of_files_is_counted(tmp_path: Path, step: str) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    binary = Binaries().open([str(build(tmp_path, "int main(void) { return 0; }"))], "program")
    assert binary is not None
    steps = ("attach_unwinders", "attach_sites", "attach_watch", "attach_holds")
    attacher: Any = SimpleNamespace(**{name: fails if name == step else lambda *_, **__: None for name in steps})
    rows: Any = SimpleNamespace(install=lambda _: None)
    sites: Any = SimpleNamespace(add=lambda *_: None, count=0, unresolved=[], uncovered=[])
    finder: Any = SimpleNamespace(find=lambda _: FoundSites((), ()))
    prober = Prober(finder, sites, rows, attacher, Mishaps(), follow=True)
    prober.link(7, [binary])
    assert (prober.without_files, sites.unresolved) == (1, [])


def test_a_binary_that_may_not_be_opened_is_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    program = str(build(tmp_path, "int main(void) { return 0; }"))
    monkeypatch.setattr("tracer.binaries.open_binaries.open_plain", fails)
    with pytest.raises(OSError, match="Too many open files"):
        Binaries().open([program], "program")
