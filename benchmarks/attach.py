"""From `refleak -p` to the probes in place, for a process with very many libraries."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, CalledProcessError, Popen

from benchmarks.commands import Command, Running, Unmeasured, running
from benchmarks.many_libraries import build_libraries
from benchmarks.methods import REFLEAK, refleak_report
from benchmarks.programs import Programs
from benchmarks.samples import Samples, text_of_ratio
from benchmarks.settings import CACHE, Settings
from benchmarks.tables import Results, Table

_LIBRARIES = 300
_TRACEPOINTS = 3
"""Attached last, after all probes: on fork, exec and exit."""


def attach(programs: Programs, settings: Settings) -> Results:
    """Measure the time from the command to the probes in place, with refleak's cache empty and full."""
    count, cache = settings.count(_LIBRARIES, 10), CACHE
    cold, warm, reason = Samples(), Samples(), ""
    try:
        folder = _libraries(settings.folder / "libraries", count)
        for index in range(settings.rounds):
            shutil.rmtree(cache, ignore_errors=True)
            for samples in (cold, warm):
                samples.by_round[index] = _seconds(programs.many_libraries, folder, count, cache, settings)
    except Unmeasured as failure:
        reason = str(failure)
    lines = [[title, f"{count}", text_of_ratio(samples), reason]
             for title, samples in (("nothing cached", cold), ("programs and tables cached", warm))]  # fmt: skip
    table = Table(
        "From the command to the probes in a running process, seconds",
        ["cache", "libraries", "seconds", "absent because"], lines,
    )  # fmt: skip
    return Results([table], {"attach": warm})


def _libraries(folder: Path, count: int) -> Path:
    folder.mkdir(exist_ok=True)
    try:
        build_libraries(folder, count)
    except (OSError, CalledProcessError) as error:
        raise Unmeasured(f"the libraries cannot be compiled: {error}") from None
    return folder


def _seconds(program: Path, folder: Path, count: int, cache: Path, settings: Settings) -> float:
    with _waiting([str(program), str(folder), str(count)]) as target, refleak_report() as report:
        command: Command = [REFLEAK, "-q", "--format", "json", "-o", report, "-p", str(target.pid)]
        with running(command, environment={"REFLEAK_CACHE": str(cache)}) as tracer:
            wait_until_armed(tracer, settings)
            return (time.monotonic_ns() - tracer.began_ns) / 1e9


@contextmanager
def _waiting(command: list[str]) -> Iterator[Popen[bytes]]:
    """Start a target that says when it is ready, and waits for its stdin, until the end."""
    with Popen(command, stdin=PIPE, stdout=PIPE, bufsize=0) as target:
        try:
            assert target.stdout is not None
            if target.stdout.readline() != b"ready\n":
                raise Unmeasured("the target did not become ready")
            yield target
        finally:
            target.kill()


def wait_until_armed(tracer: Running, settings: Settings) -> None:
    """Wait until all probes are in place; raises Unmeasured where that takes too long."""
    while not _is_armed(tracer.pid):
        _check(tracer, settings)
        time.sleep(0.005)


def _check(tracer: Running, settings: Settings) -> None:
    if time.monotonic_ns() - tracer.began_ns > settings.timeout_seconds * 1e9:
        raise Unmeasured(f"did not attach within {settings.timeout_seconds:.0f} s")
    if not Path(f"/proc/{tracer.pid}/fdinfo").exists() or _is_ended(tracer.pid):
        raise Unmeasured(f"ended before it had attached: {tracer.stderr.strip()[:100]}")


def _is_ended(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def _is_armed(pid: int) -> bool:
    found = 0
    for entry in Path(f"/proc/{pid}/fdinfo").glob("*"):
        try:
            found += "tp_name:" in entry.read_text()
        except OSError:
            continue
    return found >= _TRACEPOINTS
