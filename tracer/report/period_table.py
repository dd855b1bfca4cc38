"""Period tables: what came and went between checkpoints, as lines."""

from __future__ import annotations

import sys

from tracer.model.findings import Findings
from tracer.model.periods import Period, PeriodRow
from tracer.report.amounts import counted, duration, size
from tracer.report.entry_sentence import fitted_place
from tracer.report.page import Page

_LEAST_ROOM = 30
"""Columns for a place, behind its numbers; where there are fewer, it has a line of its own."""


def period_title(period: Period, last: bool) -> str:
    """Return "from the start to checkpoint 1 at 4.0 s: 12 made, 9 freed; of those made 3 left (1.2 KiB)"."""
    until = f"{'the end' if last else f'checkpoint {period.number}'} at {duration(period.until_ns)}"
    since = f"from checkpoint {period.number - 1}" if period.number > 1 else "from the start"
    made, left = sum(row.made for row in period.rows), sum(row.outstanding for row in period.rows)
    freed = sum(row.freed or 0 for row in period.rows)
    bytes_left = sum(row.outstanding_bytes or 0 for row in period.rows)
    return f"{since} to {until}: {made:,} made, {freed:,} freed; of those made {left:,} left ({size(bytes_left)})"


def row_place(row: PeriodRow, room: int = sys.maxsize) -> str:
    """Return "dso from dso__new (dso.c:88)", or the place alone where there is no type to name; cut to `room` columns,
    for which long names are shortened first."""
    of = f"{row.type} from " if row.kind == "reference" else ""
    place = of + fitted_place(row.stack[row.own_frame or 0] if row.stack else None, room - len(of))
    return place if len(place) <= room else place[:room].rpartition(" ")[0] or place[:room]


def add_periods(page: Page, findings: Findings, top: int) -> None:
    """Add a table for each period: its `top` entries, those that left most first."""
    if not findings.periods:
        return
    page.blank()
    page.heading("between checkpoints")
    for period in findings.periods:
        page.paragraph(period_title(period, period is findings.periods[-1]), "    ", "  ")
        if period.rows:
            page.line(f"    {'made':>8}{'freed':>9}{'left':>9}")
        for row in period.rows[:top]:
            freed = "?" if row.freed is None else f"{row.freed:,}"
            lead = f"    {row.made:>8,}{freed:>9}{row.outstanding:>9,}  "
            room = page.width - len(lead)
            if room >= _LEAST_ROOM:
                page.line(lead, row_place(row, room))
            else:
                page.line(lead)
                page.line("      ", row_place(row, page.width - 6))
        if len(period.rows) > top:
            page.line(f"    and {counted(len(period.rows) - top, 'more entry', 'more entries')}")
