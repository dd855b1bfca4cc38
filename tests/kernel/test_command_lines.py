"""Ways to say what to trace, and to end it, as typed in a shell."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from bpf_residue import Residue
from conftest import REFLEAK

HEARS_INTERRUPTS = ("env", "--default-signal=INT")
"""Whatever started the tests may ignore them, as a shell does for what runs in the background."""


def run(*words: str | Path, at: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=120, cwd=at)


@pytest.mark.parametrize("before", [(), ("--",), ("run",), ("--exec",), ("run", "--heap-only")])
def test_a_command_is_traced(targets: Path, before: tuple[str, ...]) -> None:
    done = run(REFLEAK, "--user", "root", *before, "./short", at=targets) if before[:1] != ("run",) else run(
        REFLEAK, *before, "--user", "root", "./short", at=targets
    )
    assert done.returncode == 0
    assert done.stderr.splitlines()[0] == "refleak: LEAK: lost 4.4 KiB in 30 blocks"


def test_the_command_keeps_its_options_and_dashes(targets: Path) -> None:
    done = run(REFLEAK, "--user", "root", "--exec", "/bin/echo", "a", "--", "b", "--top", "3", at=targets)
    assert (done.returncode, done.stdout) == (0, "a -- b --top 3\n")


def test_an_option_behind_the_command_is_told(targets: Path) -> None:
    """No report was written, and nobody said why."""
    done = run(REFLEAK, "--user", "root", "./short", "-o", "report.html", at=targets)
    assert done.stderr.splitlines()[-1] == (
        "refleak: -o report.html stands behind the command, which got it: options of refleak come before it"
    )
    assert not (targets / "report.html").exists()


def test_the_package_runs_as_a_module(targets: Path) -> None:
    done = run(sys.executable, "-m", "tracer", "--user", "root", targets / "short", at=REFLEAK.parent)
    assert done.stderr.splitlines()[0] == "refleak: LEAK: lost 4.4 KiB in 30 blocks"


def test_what_takes_its_time_is_shown_on_a_terminal(targets: Path, private_folders: Callable[[], Path]) -> None:
    ours, theirs = os.openpty()
    environment = {**os.environ, "REFLEAK_CACHE": str(private_folders())}
    command = [REFLEAK, "--user", "root", targets / "short"]
    with subprocess.Popen(command, stderr=theirs, env=environment) as process:
        os.close(theirs)
        said = b""
        with suppress(OSError):  # at the end nobody has the other side
            while piece := os.read(ours, 4096):
                said += piece
    os.close(ours)
    shown = re.findall(rb"\rrefleak: (.*?) \.\.\.\x1b\[K", said)
    assert process.returncode == 0
    assert shown == [
        b"loading the BPF programs", b"compiling the BPF programs, which is done once", b"looking up names",
        b"analysing",
    ]  # fmt: skip


def test_an_interrupt_of_the_compiler_says_so_and_starts_nothing(
    private_folders: Callable[[], Path], tmp_path: Path
) -> None:
    """It ended without a word."""
    ours, theirs = os.openpty()
    began, residue = tmp_path / "began", Residue()
    cold = {**os.environ, "REFLEAK_CACHE": str(private_folders())}
    command = [*HEARS_INTERRUPTS, REFLEAK, "--user", "root", "touch", began]
    with subprocess.Popen(command, stderr=theirs, env=cold) as process:
        os.close(theirs)
        said = b""
        while b"compiling" not in said:
            said += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        with suppress(OSError):  # at the end nobody has the other side
            while piece := os.read(ours, 4096):
                said += piece
    os.close(ours)
    assert said.decode().rpartition("\x1b[K")[2] == "refleak: interrupted before touch was started\r\n"
    assert (process.returncode, began.exists(), residue.left()) == (130, False, [])


@pytest.mark.parametrize("twice", [False, True])
def test_an_interrupt_at_any_moment_leaves_no_traceback(targets: Path, tmp_path: Path, twice: bool) -> None:
    """While modules are imported, programs loaded, probes placed, the target runs and ends, names are looked up."""
    command = [*HEARS_INTERRUPTS, REFLEAK, "--user", "root", "-o", tmp_path / "out.json", targets / "short"]
    began = time.monotonic()
    subprocess.run(command, check=True)
    whole, residue = time.monotonic() - began, Residue()
    for share in range(18):
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(whole * share / 16)
            for _ in range(1 + twice):
                process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=120)
        when = f"after {share}/16 of {whole:.2f} s"
        assert process.returncode in (0, 130, -signal.SIGINT), when
        assert "Traceback" not in said and "Exception" not in said and "failed by itself" not in said, when + said
    assert residue.left() == []
