"""Entries that several processes have, as the compilers of a build do: one for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tracer.late_dataclasses import dataclass
from tracer.model.findings import Leak
from tracer.model.selection import Sample
from tracer.model.snapshot import EVERY_KIND
from tracer.model.urgency import urgency
from tracer.report.cause_entries import CauseEntry
from tracer.report.weights import total


@dataclass(frozen=True)
class SharedEntry:
    """What is listed under one number: an entry of one process, or plain ones of several with one id, of which the
    first is the biggest."""

    parts: tuple[CauseEntry, ...]

    @property
    def leaks(self) -> tuple[Leak, ...]:
        return tuple(leak for part in self.parts for leak in part.leaks)

    @property
    def entry(self) -> CauseEntry:
        return self.parts[0]

    @property
    def summed(self) -> Leak:
        """Return the first one with the sums of all."""
        first = self.entry.summed
        if len(self.parts) == 1:
            return first
        leaks, weight = self.leaks, total(self.leaks)
        samples = [leak.sample for leak in leaks if leak.sample is not None]
        return replace(
            first, count=weight.count, bytes=weight.bytes,
            made=_sum(leak.made for leak in leaks), freed=_sum(leak.freed for leak in leaks),
            sample=sum(samples, Sample()) if samples else None,
        )  # fmt: skip

    @property
    def where(self) -> str:
        """Return ", in 31 processes", or nothing."""
        count = len({part.lead.pid for part in self.parts})
        return f", in {count:,} processes" if count > 1 else ""


def over_processes(entries: Sequence[CauseEntry]) -> list[SharedEntry]:
    """Put together what several processes have of blocks, and order it by what they all have. References stay as they
    are: each process has causes of its own."""
    found: dict[object, list[CauseEntry]] = {}
    for number, entry in enumerate(entries):
        lead = entry.lead
        is_plain = len(entry.leaks) == 1 and lead.kind != "reference"
        key: object = (entry.id, lead.state, lead.reachability, lead.owner) if is_plain else number
        found.setdefault(key, []).append(entry)
    shared = [SharedEntry(tuple(many)) for many in found.values()]
    return shared if len(shared) == len(entries) else sorted(shared, key=_place)


def _place(shared: SharedEntry) -> tuple[int, int, int]:
    lead = shared.entry.lead
    size = total(shared.leaks).bytes if lead.kind != "reference" else 0
    return urgency(lead), EVERY_KIND.index(lead.kind), -size


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
