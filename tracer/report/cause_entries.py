"""Entries of one cause, folded into one, with what it keeps alive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tracer.late_dataclasses import dataclass
from tracer.model.addresses import Space
from tracer.model.findings import Leak
from tracer.report.amount_words import amount
from tracer.report.amounts import counted
from tracer.report.class_words import below_words
from tracer.report.page import Page
from tracer.report.stack_lines import births_alike

_MOST = 5


@dataclass(frozen=True)
class CauseEntry:
    """What is listed under one number: an entry, and the others that have the same cause."""

    lead: Leak
    others: tuple[Leak, ...] = ()
    kept: tuple[Leak, ...] = ()
    """Objects that are alive only because these are."""
    memory: tuple[Leak, ...] = ()
    """The blocks that these objects are in, and those that they keep alive."""

    @property
    def leaks(self) -> tuple[Leak, ...]:
        return (self.lead, *self.others, *self.kept, *self.memory)

    @property
    def count(self) -> int:
        return self.lead.count + sum(leak.count for leak in self.others)

    @property
    def id(self) -> str:
        """Return what stays over runs, whichever of them is the biggest."""
        return self.lead.cause or self.lead.id

    @property
    def is_held(self) -> bool:
        return all(leak.is_held for leak in (self.lead, *self.others))

    @property
    def summed(self) -> Leak:
        """Return the first entry with the sum of what they all accuse as much."""
        if not self.others or not self.lead.unpaired:
            return self.lead
        first = self.lead.unpaired[0]
        alike = [get for leak in (self.lead, *self.others) for get in leak.unpaired[:1]]
        get = replace(first, count=sum(get.count for get in alike))
        return replace(self.lead, count=self.count, unpaired=(get, *self.lead.unpaired[1:]))


def cause_entries(leaks: Iterable[Leak]) -> list[CauseEntry]:
    """Fold entries that are in order: those of one cause together, what is kept alive and their memory below it."""
    found: dict[object, list[Leak]] = {}
    kept: dict[object, list[Leak]] = {}
    memory: dict[object, list[Leak]] = {}
    for number, leak in enumerate(leaks):
        if leak.kept_alive_by is not None:
            kept.setdefault((leak.space, leak.kept_alive_by), []).append(leak)
        elif leak.memory_of is not None:
            memory.setdefault((leak.space, leak.memory_of), []).append(leak)
        else:
            found.setdefault((leak.space, leak.cause) if leak.cause else number, []).append(leak)
    entries = [
        CauseEntry(many[0], tuple(many[1:]), tuple(kept.pop(key, ())), tuple(memory.pop(_key(many[0]), ())))
        for key, many in found.items()
    ]
    unlisted = (leak for folded in (kept, memory) for many in folded.values() for leak in many)
    return [*entries, *map(CauseEntry, unlisted)]


def _key(leak: Leak) -> tuple[Space, str]:
    return leak.space, leak.cause or leak.id


def same_cause_words(entry: CauseEntry) -> str:
    """Return "the same cause: 2 more objects, created at"; nothing where this is all."""
    if not entry.others:
        return ""
    return f"the same cause: {counted(sum(leak.count for leak in entry.others), 'more object')}, created at"


def kept_words(entry: CauseEntry) -> str:
    """Return "kept alive by these, no cause of their own: 50 x str"; nothing where nothing is."""
    if not entry.kept:
        return ""
    counts = Counter[str]()
    for leak in entry.kept:
        counts[leak.type or "unknown"] += leak.count
    named = ", ".join(f"{count:,} x {type_}" for type_, count in counts.most_common())
    return f"kept alive by {'it' if entry.count == 1 else 'these'}, no cause of their own: {named}"


def memory_words(entry: CauseEntry) -> str:
    """Return "their memory: 72 bytes in 3 blocks, and 1 block, 50 bytes below it"; nothing where none is listed."""
    if not entry.memory:
        return ""
    whose = "its" if len(entry.leaks) == 2 and entry.count == 1 else "their"
    return ", ".join(filter(None, (f"{whose} memory: {amount(entry.memory)}", below_words(*entry.memory))))


def hanging_words(entry: CauseEntry) -> list[str]:
    """Return what is said of all that hangs below an entry, lives by its objects or is their memory; a line each."""
    return list(filter(None, (below_words(entry.summed), kept_words(entry), memory_words(entry))))


def add_same_cause(page: Page, entry: CauseEntry) -> None:
    """Add where else objects of this cause were created, and what they keep alive."""
    if entry.others:
        page.paragraph(same_cause_words(entry), "      ", "    ")
        _add_births(page, entry.others)
    page.paragraph(kept_words(entry), "      ", "    ")


def _add_births(page: Page, leaks: Sequence[Leak]) -> None:
    column = len(f"{max(leak.count for leak in leaks):,}")
    births = births_alike(leaks, page.width - column - 8)
    for lines, count in births[:_MOST]:
        for index, line in enumerate(lines):
            page.line(f"      {count:>{column},}  " if index == 0 else " " * (column + 8), line)
    rest = births[_MOST:]
    if rest:
        page.line(f"      {sum(count for _, count in rest):>{column},}  elsewhere")
