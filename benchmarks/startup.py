"""refleak itself: the time to the target's first instruction, and from its last to the report."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from benchmarks.commands import Command, Unmeasured, run
from benchmarks.methods import loss_of, refleak_command, refleak_report
from benchmarks.programs import Programs
from benchmarks.samples import Samples, text_of_ratio
from benchmarks.settings import CACHE, Settings
from benchmarks.tables import Results, Table

_PEAK = Path(__file__).parent / "peak.py"
_BLOCKS, _STACKS = 1_000_000, 10_000
_MILLION_ROUNDS = 3


def _traced(
    command: Command, settings: Settings, cache: Path, before: Command = ()
) -> tuple[float, float, str]:
    """Return the seconds before many_stacks's main and those after it, and what was lost. `before`: what runs
    refleak."""
    with refleak_report() as report:
        words = (*before, *refleak_command(report, command))
        finished = run(words, settings.timeout_seconds, environment={"REFLEAK_CACHE": str(cache)}).checked()
        try:
            first, last = map(int, finished.stdout.split())
        except ValueError:
            raise Unmeasured("the target printed no times") from None
        return (first - finished.began_ns) / 1e9, (finished.ended_ns - last) / 1e9, loss_of(report)


def start_up(programs: Programs, settings: Settings) -> Results:
    """Measure the time to the first instruction, with refleak's cache empty and full."""
    cold, warm, cache = Samples(), Samples(), CACHE
    reason = ""
    for index in range(settings.rounds):
        shutil.rmtree(cache, ignore_errors=True)
        try:
            for samples in (cold, warm):
                samples.by_round[index] = _traced([programs.many_stacks, "1", "1"], settings, cache)[0]
        except Unmeasured as failure:
            reason = str(failure)
            break
    lines = [[title, text_of_ratio(samples), reason]
             for title, samples in (("nothing cached", cold), ("programs and tables cached", warm))]  # fmt: skip
    table = Table("From the command to the target's main, seconds", ["cache", "seconds", "absent because"], lines)
    return Results([table], {"start-up": warm})


def million_blocks(programs: Programs, settings: Settings) -> Results:
    """Measure the time from the target's end to refleak's, and its memory, with a million live blocks."""
    blocks, cache = settings.count(_BLOCKS, 1000), CACHE
    stacks = min(_STACKS, max(1, blocks // 10))
    after, peak, notes = Samples(), Samples(), []
    for index in range(min(_MILLION_ROUNDS, settings.rounds)):
        try:
            command = (programs.many_stacks, str(blocks), str(stacks))
            measure = (sys.executable, "-I", _PEAK, settings.folder / "peak")
            _, after.by_round[index], lost = _traced(command, settings, cache, measure)
            peak.by_round[index] = int((settings.folder / "peak").read_text()) / 1024
            notes += [lost] if lost else []
        except Unmeasured as failure:
            notes.append(str(failure))
            break
    line = [f"{blocks:,}", f"{stacks:,}", text_of_ratio(after), text_of_ratio(peak)]
    header = ["live blocks", "stacks", "seconds from exit to report", "peak MiB"]
    return Results([Table("Reporting what is alive", header, [line], notes)],
                   {"report seconds": after, "report MiB": peak})  # fmt: skip
