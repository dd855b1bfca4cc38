"""Processes with the same entries, as the children of one program have them: listed once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tracer.late_dataclasses import dataclass
from tracer.model.addresses import Space
from tracer.model.findings import Leak
from tracer.model.urgency import urgency
from tracer.report.amount_words import amount
from tracer.report.amounts import counted
from tracer.report.cause_entries import CauseEntry
from tracer.report.page import Page
from tracer.report.weights import total

_MOST_NAMED = 3
_LEAST_URGENT = 4


@dataclass(frozen=True)
class ProcessEntries:
    """What is listed of a process, and what it only has from its parent. `space`: its last; `program`: what it ran."""

    space: Space
    program: str
    listed: Sequence[CauseEntry]
    inherited: Sequence[Leak]

    @property
    def what(self) -> tuple[str, ...]:
        """Return what those that are alike have in common."""
        return (self.program, *sorted(entry.id for entry in self.listed))


def alike(processes: Iterable[ProcessEntries], target: Space | None) -> list[list[ProcessEntries]]:
    """Return those of which something is to be said, each with the later ones that have the same entries: those that
    lost something first, of these the target, and then who lost most; last who has nothing of its own."""
    groups: dict[tuple[str, ...], list[ProcessEntries]] = {}
    for process in processes:
        if process.listed or process.inherited:
            groups.setdefault(process.what, []).append(process)

    def place(group: list[ProcessEntries]) -> tuple[int, bool, int, int]:
        leaks = _listed(group)
        most_urgent = min(map(urgency, leaks), default=_LEAST_URGENT)
        is_targets = any(process.space == target for process in group)
        lost = total(leaks)
        return most_urgent, not is_targets, -lost.bytes, -lost.count

    return sorted(groups.values(), key=place)


def _listed(processes: Sequence[ProcessEntries]) -> list[Leak]:
    return [leak for process in processes for entry in process.listed for leak in entry.leaks]


def add_others(page: Page, others: Sequence[ProcessEntries]) -> None:
    """Say of which other processes what was listed is true too, and what they have from their parents."""
    if not others:
        return
    page.blank()
    page.paragraph(f"the same in {counted(len(others), 'more process', 'more processes')} ({_pids(others)}): "
                   f"{amount(_listed(others))}")  # fmt: skip
    inherited = [leak for process in others for leak in process.inherited]
    if inherited:
        page.paragraph(f"inherited by fork there, no leak: {amount(inherited)}")


def add_rest(page: Page, groups: Sequence[Sequence[ProcessEntries]], count: int) -> None:
    """Sum up what is left of `count` groups of processes that are alike."""
    processes = [process for group in groups for process in group]
    if not processes:
        return
    page.blank()
    where = counted(len(processes), "more process", "more processes")
    page.paragraph(f"and in {where} ({_pids(processes)}): {amount(_listed(processes))} "
                   f"(--top {count} lists all)")  # fmt: skip


def add_inherited(page: Page, processes: Sequence[ProcessEntries]) -> None:
    """Sum up what processes, of which nothing else is listed, have from their parents."""
    inherited = [leak for process in processes for leak in process.inherited]
    where = counted(len(processes), "process", "processes")
    page.blank()
    page.paragraph(f"inherited by fork in {where} ({_pids(processes)}), no leak: {amount(inherited)}")


def _pids(processes: Sequence[ProcessEntries]) -> str:
    named = ", ".join(str(process.space[0]) for process in processes[:_MOST_NAMED])
    rest = len(processes) - _MOST_NAMED
    return f"pid{'s' * (len(processes) > 1)} {named}" + (f" and {rest:,} more" if rest > 0 else "")
