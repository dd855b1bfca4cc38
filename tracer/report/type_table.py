"""The table of counted types."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.model.findings import TypeRow
from tracer.report.amounts import counted
from tracer.report.names import shorten
from tracer.report.page import Page

_MOST = 20
_LEAST_NAME = 8
"""Columns that are left for names, if there is to be a table."""
_HEADERS = ("type", "created", "gets", "puts", "destroyed", "alive")


def add_types(page: Page, types: tuple[TypeRow, ...]) -> None:
    """Add one row per type, those with most alive first, or a sentence where rows are too wide; those beyond 20 are
    counted.
    """
    if not types:
        return
    page.blank()
    shown, rest = types[:_MOST], types[_MOST:]
    numbers = [(r.created, r.gets, r.puts, r.destroyed, r.outstanding) for r in shown]
    cells = [[f"{number:,}" for number in row] for row in numbers]
    taken = sum(max(len(header) + 2, *(len(row[i]) for row in cells)) + 2 for i, header in enumerate(_HEADERS[1:]))
    if page.width - taken < _LEAST_NAME:
        for row in shown:
            page.paragraph(_sentence(row), "    ", "")
    else:
        _add_table(page, shown, cells, page.width - taken)
    if rest:
        alive = sum(row.outstanding for row in rest)
        page.line(f"and {counted(len(rest), 'more type')} with {alive:,} alive")


def _sentence(row: TypeRow) -> str:
    numbers = f"{row.created:,} created, {row.gets:,} gets, {row.puts:,} puts, {row.destroyed:,} destroyed"
    return f"{row.type}: {numbers}, {row.outstanding:,} alive"


def _add_table(page: Page, types: Sequence[TypeRow], cells: Sequence[Sequence[str]], room: int) -> None:
    from tabulate import tabulate

    rows = [[shorten(type_.type, room), *row] for type_, row in zip(types, cells, strict=True)]
    align = ("left", *["right"] * 5)
    for line in tabulate(rows, _HEADERS, tablefmt="simple", colalign=align, disable_numparse=True).splitlines():
        page.line(line)
