"""Events per second: how many before the first is lost, and what the tracer spends at a fixed rate."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.commands import Running, Unmeasured, run, running
from benchmarks.methods import loss_of, refleak_command, refleak_report
from benchmarks.programs import Programs
from benchmarks.samples import Samples, samples_of, text_of_ratio, three_digits
from benchmarks.settings import Settings
from benchmarks.tables import Results, Table

_RATES = (100_000, 200_000, 400_000, 800_000, 1_600_000, 3_200_000)
_BURST_SECONDS = 4.0
_STEADY_RATE = 100_000
_START_UP_SECONDS = 2.0
"""By then the start is over."""
_STEADY_SECONDS = 3.0
_START_SECONDS = 20
_FELL_BEHIND = 0.9


def _burst(programs: Programs, rate: int, settings: Settings) -> tuple[float, str]:
    """Return the events per second that a traced target really made, and what was lost."""
    with refleak_report() as report:
        seconds = settings.count(_BURST_SECONDS * 1000, 400) / 1000
        command = refleak_command(report, [programs.paced, str(rate), str(seconds)])
        finished = run(command, settings.timeout_seconds).checked()
        if len(finished.numbers) < 2:
            raise Unmeasured("the target printed no rate")
        return finished.numbers[1], loss_of(report)


def first_loss(programs: Programs, settings: Settings) -> Results:
    """Double the rate until events are lost, or the traced target cannot make more."""
    lines, without, notes = [], 0.0, []
    try:
        for rate in _RATES:
            made, lost = _burst(programs, rate, settings)
            lines.append([f"{rate:,}", f"{made:,.0f}", lost or "nothing"])
            if lost:
                break
            without = max(without, made)
            if made < rate * _FELL_BEHIND:
                notes.append("The target can make no more: its probes take all of its time.")
                break
    except Unmeasured as reason:
        notes.append(str(reason))
    notes.append(f"Each for {three_digits(_BURST_SECONDS)} s in a full run, at default settings.")
    figures = {"events without loss": samples_of(without)} if without else {}
    header = ["events/s asked for", "made", "lost"]
    return Results([Table("Events per second until the first loss", header, lines, notes)], figures)


@contextmanager
def traced_target(programs: Programs, rate: int, *options: str) -> Iterator[tuple[Running, int]]:
    """Keep refleak tracing a target that makes `rate` events per second; give it and the target's pid."""
    with refleak_report() as report:
        command = refleak_command(report, [programs.paced, str(rate), "600"], *options)
        with running(command) as tracer:
            yield tracer, wait_for_pid(tracer)


def wait_for_pid(process: Running) -> int:
    """Wait until paced has printed its pid."""
    process.wait_for_words("\n", _START_SECONDS)
    return int(process.stdout.split()[0])


def processor_seconds(pid: int) -> float:
    """Return what a process has used so far, without its children: utime and stime of proc_pid_stat(5)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        raise Unmeasured("the tracer ended early") from None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def tracer_share(programs: Programs, settings: Settings) -> Results:
    """Measure which part of a processor the tracer takes at a steady rate of events."""
    shares, notes = Samples(), []
    for index in range(min(3, settings.rounds)):
        try:
            with traced_target(programs, _STEADY_RATE) as (tracer, _):
                time.sleep(_START_UP_SECONDS)
                began, used = time.monotonic(), processor_seconds(tracer.pid)
                time.sleep(settings.count(_STEADY_SECONDS * 1000, 300) / 1000)
                spent = processor_seconds(tracer.pid) - used
                shares.by_round[index] = 100 * spent / (time.monotonic() - began)
        except Unmeasured as reason:
            notes.append(str(reason))
            break
    line = [f"{_STEADY_RATE:,}", text_of_ratio(shares)]
    table = Table("The tracer's own processor time", ["events/s", "% of one processor"], [line], notes)
    return Results([table], {"tracer share": shares})
