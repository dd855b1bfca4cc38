"""When checkpoints are written, and what happens to a trace whose recording fails."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hand_made import SECOND, server

from tracer.capture.session import Session
from tracer.cli.choices import is_recording, next_command
from tracer.cli.trace_choices import recorder_of
from tracer.errors import CannotWrite
from tracer.model.snapshot import Snapshot
from tracer.pipeline import recorder as module
from tracer.pipeline.recorder import Recorder
from tracer.pipeline.trace_options import TraceOptions
from tracer.recording.reader import read_recording


class Drained:
    drain = staticmethod(lambda: None)


SESSION = cast(Session, Drained())


class Clock:
    """Time that passes as the test says, and by `cost` for each snapshot that is taken."""

    def __init__(self) -> None:
        self.now, self.cost, self.taken = 100.0, 0.0, 0

    def monotonic(self) -> float:
        return self.now

    def take_snapshot(self, session: Session, *, running: bool) -> Snapshot:
        assert session is SESSION and running
        self.now += self.cost
        self.taken += 1
        return replace(server()[0], target_ended=False, duration_ns=self.taken * SECOND)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(module, "take_snapshot", clock.take_snapshot)
    return clock


def turns(recorder: Recorder, clock: Clock, seconds: float) -> None:
    for _ in range(round(seconds * 50)):
        clock.now += 0.02
        recorder.tick(SESSION)


def test_a_cheap_checkpoint_comes_every_second(clock: Clock, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run.refleak", force=False, with_symbols=True)
    turns(recorder, clock, 10.5)
    assert clock.taken == 10
    assert read_recording(tmp_path / "run.refleak").snapshot.duration_ns == 10 * SECOND


def test_a_dear_one_comes_so_rarely_that_it_takes_two_percent(clock: Clock, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run.refleak", force=False, with_symbols=True)
    clock.cost = 0.5
    turns(recorder, clock, 60)
    assert clock.taken == 3  # after 1, 26.5 and 52 seconds


def test_a_failure_is_said_once_and_the_trace_goes_on(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = argparse.Namespace(output=tmp_path / "run.refleak", force=False, no_symbols=False)
    recorder = recorder_of(asked, TraceOptions())
    assert recorder is not None

    def refuse(*_: Any) -> None:
        raise CannotWrite("cannot write run.refleak: No space left on device")

    monkeypatch.setattr("tracer.recording.writer.RecordingWriter.checkpoint", refuse)
    turns(recorder, clock, 5)
    said = "refleak: cannot write run.refleak: No space left on device; the trace goes on\n"
    assert (clock.taken, capsys.readouterr().err) == (1, said)
    snapshot, code = server()
    recorder.finish(snapshot, code.symbols)
    assert read_recording(tmp_path / "run.refleak").symbols == code.symbols


def test_symbols_are_left_out_on_request(clock: Clock, tmp_path: Path) -> None:
    snapshot, code = server()
    recorder = Recorder(tmp_path / "run.refleak", force=False, with_symbols=False)
    recorder.finish(snapshot, code.symbols)
    assert read_recording(tmp_path / "run.refleak").symbols is None


def test_the_suffix_decides(tmp_path: Path) -> None:
    assert is_recording(Path("x.refleak")) and not is_recording(Path("x.json")) and not is_recording(None)
    asked = argparse.Namespace(output=tmp_path / "run.json", force=False, no_symbols=False)
    assert recorder_of(asked, TraceOptions()) is None
    asked.output = tmp_path / "run.refleak"
    recorder = recorder_of(asked, TraceOptions())
    assert recorder is not None and asked.output.exists()
    assert next_command(asked.output) == f"refleak report {asked.output}"
    recorder.discard()
    assert not asked.output.exists()
