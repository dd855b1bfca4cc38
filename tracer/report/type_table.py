"""The table of counted types."""

from __future__ import annotations

from tabulate import tabulate

from tracer.model.findings import TypeRow
from tracer.report.amounts import counted
from tracer.report.names import shorten
from tracer.report.page import Page

_MOST = 20
_HEADERS = ("type", "created", "gets", "puts", "destroyed", "alive")


def add_types(page: Page, types: tuple[TypeRow, ...]) -> None:
    """Add one row per type, those with most alive first; those beyond 20 are counted."""
    if not types:
        return
    page.blank()
    shown, rest = types[:_MOST], types[_MOST:]
    numbers = [(r.created, r.gets, r.puts, r.destroyed, r.outstanding) for r in shown]
    cells = [[f"{number:,}" for number in row] for row in numbers]
    taken = sum(max(len(header) + 2, *(len(row[i]) for row in cells)) + 2 for i, header in enumerate(_HEADERS[1:]))
    rows = [[shorten(r.type, page.width - taken), *row] for r, row in zip(shown, cells, strict=True)]
    align = ("left", *["right"] * 5)
    for line in tabulate(rows, _HEADERS, tablefmt="simple", colalign=align, disable_numparse=True).splitlines():
        page.line(line)
    if rest:
        alive = sum(row.outstanding for row in rest)
        page.line(f"and {counted(len(rest), 'more type')} with {alive:,} alive")
