"""Options of the report for people."""

from __future__ import annotations

from tracer.late_dataclasses import dataclass
from tracer.report.balance import PRUNED
from tracer.report.class_words import SHOWN


@dataclass(frozen=True)
class TextOptions:
    width: int | None = None
    """Columns; None: the terminal's, or 80 where the output is none."""
    color: bool | None = None
    """None: as the terminal and NO_COLOR say."""
    top: int = 10
    """Most entries listed of each process, and most errors."""
    tree: str = PRUNED
    """How much of the balance trees: one of tracer.report.balance.TREES."""
    show: tuple[str, ...] = SHOWN
    """Classes of memory whose entries are listed; those that were not looked into always are."""
    next_command: str | None = None
    """What to type for more; printed where something was found."""
