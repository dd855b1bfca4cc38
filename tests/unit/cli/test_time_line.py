"""The time line of --stats: what was done until when, and what it took."""

from __future__ import annotations

import io
import time

from tracer.cli.time_line import TimeLine

EXPECTED = """\
refleak: where its time went
    until      took processor
  0.250 s   0.250 s   0.125 s imports
  1.500 s   1.250 s   0.375 s the trace
  1.500 s             0.500 s in all
"""


def test_each_mark_has_what_went_by_since_the_one_before() -> None:
    walls, processors = iter((100.25, 101.5)), iter((0.125, 0.5))
    line = TimeLine(enabled=True, started=100.0, wall=lambda: next(walls), processor=lambda: next(processors))
    line.mark("imports")
    line.mark("the trace")
    out = io.StringIO()
    line.write(out)
    assert out.getvalue() == EXPECTED


def test_nothing_is_printed_where_nobody_asked() -> None:
    line = TimeLine(enabled=False)
    line.mark("imports")
    out = io.StringIO()
    line.write(out)
    assert out.getvalue() == ""


def test_it_counts_from_the_start_of_the_process() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    seen: list[float] = []

    def wall() -> float:
        seen.append(time.clock_gettime(time.CLOCK_BOOTTIME))
        return seen[-1]

    line = TimeLine(enabled=True, wall=wall)
    line.mark("imports")
    out = io.StringIO()
    line.write(out)
    age = float(out.getvalue().splitlines()[2].split()[0])
    assert age > 0 and seen[-1] - age <= before + 0.01
