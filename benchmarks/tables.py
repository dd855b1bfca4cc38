"""Tables of results, as Markdown that reads well on a terminal too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.samples import Samples


@dataclass(frozen=True)
class Table:
    """A titled table; `notes` follow below it."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def markdown(self) -> str:
        cells = [list(map(_cell, row)) for row in (self.header, *self.rows)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(self.header))]
        lines = [self._line(row, widths) for row in cells]
        rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
        notes = "".join(f"\n* {note}" for note in dict.fromkeys(self.notes))
        return f"### {self.title}\n\n" + "\n".join([lines[0], rule, *lines[1:]]) + ("\n" + notes if notes else "")

    def _line(self, row: Sequence[str], widths: Sequence[int]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


@dataclass
class Results:
    """What a benchmark found: its tables, and the figures that the goals ask for."""

    tables: list[Table] = field(default_factory=list)
    figures: dict[str, Samples] = field(default_factory=dict)

    def add(self, other: Results) -> None:
        self.tables += other.tables
        self.figures.update(other.figures)
