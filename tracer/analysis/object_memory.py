"""Memory of counted objects: the blocks that are there because an object is, which is the mistake that is listed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tracer.analysis.groups import Column, group_rows, sorted_runs
from tracer.late_dataclasses import dataclass
from tracer.model.findings import Leak
from tracer.model.snapshot import Records

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NumberedObjects:
    """Counted objects of a snapshot, and of each the number of its entry (Leak.number, or the one of its keeper's)."""

    objects: Records
    number: Numbers

    def within(self, pid: Column, generation: Column, address: Column, size: Column) -> Numbers:
        """Return of each block the number of the one object in it; 0 where there is none, or more than one."""
        found = np.zeros(len(address), np.int64)
        if len(self.objects) == 0 or len(address) == 0:
            return found
        both = group_rows(*(np.concatenate(pair) for pair in (
            (self.objects["pid"], pid), (self.objects["generation"], generation),
        )))  # fmt: skip
        order, bounds = sorted_runs(both.label, len(both))
        known = len(self.objects)
        for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            rows = order[start:end]
            objects, blocks = rows[rows < known], rows[rows >= known] - known
            if not len(objects) or not len(blocks):
                continue
            objects = objects[np.argsort(self.objects["address"][objects], kind="stable")]
            addresses = self.objects["address"][objects].astype(np.uint64)
            begin = address[blocks].astype(np.uint64)
            first = np.searchsorted(addresses, begin)
            is_one = np.searchsorted(addresses, begin + size[blocks].astype(np.uint64)) - first == 1
            found[blocks[is_one]] = self.number[objects[first[is_one]]]
        return found


def numbers_of_each(numbers: Numbers, bounds: Numbers) -> list[tuple[int, ...]]:
    """Return the entries whose objects are in the blocks of each entry, by the number in each block; none unless in
    all. The blocks of entry e are bounds[e] to bounds[e + 1], at least one."""
    found: list[tuple[int, ...]] = [()] * (len(bounds) - 1)
    for entry in np.flatnonzero(np.minimum.reduceat(numbers, bounds[:-1])).tolist():
        found[entry] = tuple(sorted(set(numbers[bounds[entry] : bounds[entry + 1]].tolist())))
    return found


def with_memory(leaks: Iterable[Leak]) -> list[Leak]:
    """Say of the blocks of which entry they are the memory, where all are of one: of its cause, if it has one."""
    leaks = list(leaks)
    entries = {
        leak.number: leak.cause or leak.kept_alive_by or leak.id
        for leak in leaks
        if leak.number and leak.suppressed_by is None
    }

    def told(leak: Leak) -> Leak:
        found = {entries.get(number) for number in leak.objects_in}
        memory_of = found.pop() if len(found) == 1 else None
        return leak if leak.suppressed_by or leak.memory_of == memory_of else replace(leak, memory_of=memory_of)

    return list(map(told, leaks))
