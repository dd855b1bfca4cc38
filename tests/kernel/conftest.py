"""Fixtures of the kernel tests: the targets, built once, and refleak run on them."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from bpf_residue import Residue
from features import why_not
from patience import TIMEOUT_SECONDS
from traced_perf import TracedPerf
from traced_report import Run

CHECKOUT = Path(__file__).parents[2]
REFLEAK = CHECKOUT / "refleak"

Refleak = Callable[..., Run]
LiveTarget = Callable[..., AbstractContextManager["subprocess.Popen[bytes]"]]


@pytest.fixture(autouse=True)
def _needs(request: pytest.FixtureRequest) -> None:
    """Skip a test whose mark `needs` names what the kernel lacks; fail where it should have it."""
    for marker in request.node.iter_markers("needs"):
        for name in marker.args:
            if reason := why_not(name):
                pytest.skip(reason)


@pytest.fixture(scope="session", autouse=True)
def _tracefs() -> None:
    """Mount tracefs where a system has it, to see what refleak, which can do without that mount, has there."""
    if not Path("/sys/kernel/tracing/README").exists():
        subprocess.run(["mount", "-t", "tracefs", "none", "/sys/kernel/tracing"], check=True)


@pytest.fixture(scope="session")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build all targets into one folder, or take those that REFLEAK_TARGETS names: built for a machine without time."""
    if built := os.environ.get("REFLEAK_TARGETS"):
        return Path(built)
    folder = tmp_path_factory.mktemp("targets")
    make = ["make", "-s", "-C", str(Path(__file__).parent / "targets"), f"OUT={folder}"]
    subprocess.run(make, check=True, timeout=300)
    return folder


@pytest.fixture(scope="session")
def refleak(targets: Path, tmp_path_factory: pytest.TempPathFactory) -> Refleak:
    """Give a function that runs refleak on a target and returns the Run.

    `refleak(*options, target=(NAME, ARGUMENT...))`; a NAME without a slash is one of the built targets. Equal calls
    share one run. The test fails if the run left anything behind in the kernel. What still points at what is told
    only where --reachability is among the options: entries are whole in the other tests, whatever holds their blocks.
    """
    reports = tmp_path_factory.mktemp("reports")
    known: dict[object, Run] = {}

    def run(*options: object, target: Sequence[object] = (), pid: int | None = None,
            timeout: float = TIMEOUT_SECONDS, environment: tuple[tuple[str, str], ...] = ()) -> Run:  # fmt: skip
        key = None if pid is not None else (options, tuple(target), environment)
        if key is not None and key in known:
            return known[key]
        words = [str(word) for word in target]
        if words and "/" not in words[0]:
            words[0] = str(targets / words[0])
        what = ["--exec", *words] if pid is None else ["-p", str(pid)]
        if "--reachability" not in options:
            options = (*options, "--reachability", "off")
        output = Path(tempfile.mkstemp(dir=reports, suffix=".json")[1])
        output.unlink()
        command = [str(REFLEAK), *map(str, options), "--format", "json", "-o", str(output), *what]
        result = _traced(command, output, timeout, environment, *([] if pid is None else [pid]))
        if key is not None:
            known[key] = result
        return result

    return run


def _traced(
    command: list[str], output: Path, timeout: float, environment: tuple[tuple[str, str], ...], *own: int
) -> Run:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}
    residue = Residue()
    began = time.monotonic()
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True,
            env=variables | dict(environment),
        )  # fmt: skip
        status, peak = _wait(process, timeout)
        seconds = time.monotonic() - began
        texts = []
        for stream in (stdout, stderr):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    assert status is not None, f"{command} took longer than {timeout} s: {texts[1]}"
    assert residue.left(*own) == [], f"{command} left this behind"
    assert "Traceback" not in texts[1], texts[1]
    report = json.loads(output.read_text()) if output.exists() else {}
    return Run(report, status, texts[0], texts[1], seconds, peak)


def _wait(process: subprocess.Popen[bytes], timeout: float) -> tuple[int | None, int]:
    """Return the exit status, None if the process had to be killed, and its peak memory in KiB."""
    handle = os.pidfd_open(process.pid)
    try:
        in_time = bool(select.select([handle], [], [], timeout)[0])
    finally:
        os.close(handle)
    if not in_time:
        os.killpg(process.pid, signal.SIGKILL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return (process.returncode if in_time else None), usage.ru_maxrss


@pytest.fixture
def live_target(targets: Path) -> LiveTarget:
    """Give a context manager that starts a target and enters when it has said "ready".

    Write a byte to its stdin to let it go on. It is killed at the end, if it still lives.
    """

    @contextmanager
    def start(name: str, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
        command = [str(targets / name), *map(str, arguments)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == b"ready\n"
                yield process
            finally:
                process.kill()

    return start


@pytest.fixture(scope="session")
def perf(tmp_path_factory: pytest.TempPathFactory) -> TracedPerf:
    """Return one traced perf for all tests of `perf/`: its spec and its recording are made once."""
    return TracedPerf(tmp_path_factory.mktemp("perf"))
