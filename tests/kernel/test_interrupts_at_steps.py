"""Interrupts at steps of a trace: each is sent by the step itself, as it begins."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from bpf_residue import Residue

ROOT = Path(__file__).parents[2]
DRIVER = """
import importlib, signal, sys
from functools import reduce, wraps

signal.signal(signal.SIGINT, signal.SIG_DFL)

def replace(place, made_of):
    module, _, path = place.partition(":")
    *owners, name = path.split(".")
    owner = reduce(getattr, owners, importlib.import_module(module))
    setattr(owner, name, made_of(getattr(owner, name)))

def interrupting(plain):
    @wraps(plain)
    def interrupted(*given, **named):
        signal.raise_signal(signal.SIGINT)
        return plain(*given, **named)

    return interrupted

def swallowing(plain):
    def turns(*given, **named):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return plain(*given, **named)

    return turns

def endless(_):
    def turns(*_, **__):
        while True:
            pass

    return turns

interrupted, without_end, words = sys.argv[1].split(), sys.argv[2].split(), sys.argv[3:]
for place in interrupted:
    replace(place.removeprefix("taken:"), swallowing if place.startswith("taken:") else interrupting)
for place in without_end:
    replace(place, endless)
import tracer.capture.session
tracer.capture.session._PATIENCE_SECONDS = 0.01
from tracer.cli.main import main
sys.exit(main(words))
"""
LOADING = "tracer.kernel.closer:Closer._start"
ABANDONING = "tracer.pipeline.trace:Trace._abandon"
ATTACHING = "tracer.capture.session:Session.attach"
FINDING = "tracer.probing.site_finder:SiteFinder.find tracer.probing.prober:holds_of"
CHECKED = "tracer.probing.prober:Prober.check"
ARMING = "tracer.capture.session:Session._arm"
RELEASED = "tracer.capture.launch:Launched.release"
RUNNING = "tracer.capture.session:Session.run"
READING = "tracer.scanning.endings:Endings.look_into"
REPORTING = "tracer.pipeline.trace:Trace.report"
CLOSING = "tracer.capture.session:Session.close"
DETACHING = "tracer.kernel.links:Attacher.detach_all"
ENDED = "tracer.cli.time_line:TimeLine.write"
NOT_STARTED = "refleak: interrupted before touch was started\n"


def traced(
    places: tuple[str, ...], *words: str | Path, without_end: str = "", stdin: int | None = None
) -> tuple[int, str]:
    """Return the status, and what was said, of a run that is interrupted at these places. `without_end`: what takes too
    long."""
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, " ".join(places), without_end, "--user", "root", *words], cwd=ROOT,
        capture_output=True, text=True, check=False, timeout=120, stdin=stdin,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("places", "status", "said"),
    [
        ((LOADING,), 130, NOT_STARTED),
        ((f"taken:{LOADING}",), 130, NOT_STARTED),
        ((LOADING, ABANDONING), -signal.SIGINT, ""),
        ((CHECKED, CHECKED), 130, NOT_STARTED),
        ((CHECKED, RELEASED), 130, NOT_STARTED),
        ((ARMING, RELEASED, CLOSING), -signal.SIGINT, ""),
    ],
)
def test_a_command_that_was_not_let_go_is_not_started(
    tmp_path: Path, places: tuple[str, ...], status: int, said: str
) -> None:
    """Where probes were being placed it was, and ran on alone."""
    began, residue = tmp_path / "began", Residue()
    assert traced(places, "touch", began) == (status, said)
    assert (began.exists(), residue.left()) == (False, [])


@pytest.mark.parametrize(
    "places",
    [(CHECKED,), (RELEASED,), (READING,) * 2, (REPORTING,) * 2, (CLOSING,) * 3, (DETACHING,) * 3, (ENDED,) * 3],
)
def test_a_command_that_ran_is_reported(tmp_path: Path, places: tuple[str, ...]) -> None:
    began, residue = tmp_path / "began", Residue()
    status, said = traced(places, "touch", began)
    assert (status, said.splitlines()[0]) == (0, "refleak: clean")
    assert (began.exists(), residue.left()) == (True, [])


def test_a_command_that_runs_is_reported_as_it_is_at_the_second_interrupt() -> None:
    reading, writing = os.pipe()
    status, said = traced((RUNNING, RUNNING), "sh", "-c", "exec >&- 2>&-; read line", stdin=reading)
    os.close(reading)
    os.close(writing)
    assert status == 130
    assert ", launched, traced for " in said and ", still runs" in said


def test_what_is_given_up_since_the_trace_was_to_end_is_not_called_missing() -> None:
    """It said that there was nothing to probe."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        status, said = traced((ATTACHING,), "-p", str(process.pid), without_end=FINDING)
        assert (status, said) == (130, "refleak: interrupted before the trace began\n")
