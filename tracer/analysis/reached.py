"""Reachability of what is outstanding: the classes of the snapshot's scans, joined to its records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tracer.analysis.groups import Column, matching_rows
from tracer.late_dataclasses import dataclass
from tracer.model.addresses import Space
from tracer.model.findings import INDIRECT, LOST, REACHABILITY, Leak
from tracer.model.reachability import KIND_ALLOCATION, KIND_REFERENCE, Reach, RootKind
from tracer.model.snapshot import Records, Snapshot

_ROOTS = {
    RootKind.GLOBAL: "a global", RootKind.THREAD_LOCAL: "thread-local storage", RootKind.STACK: "a stack",
    RootKind.REGISTER: "a register", RootKind.MAPPING: "a mapping", RootKind.BLOCK: "the loader's memory",
    RootKind.DESCRIBED: "memory that a spec calls a root", RootKind.HIDDEN: "perhaps a hidden pointer",
}  # fmt: skip
_Entry = tuple[Space, str, str]
"""Address space, state and id."""
_HOW = {
    Reach.REACHABLE: "held by {}",
    Reach.POSSIBLE: "pointed into, but not at its start, from {}",
    Reach.STACK: "held only by {} of the thread that ended the process",
    Reach.LOST: "nothing that is not lost points at it",
    Reach.INDIRECT: "only lost blocks point at it",
}


@dataclass(frozen=True)
class Reached:
    """Of each record of one kind: its class, the kind of root that it was reached from, and the row of the block that
    it hangs below among the snapshot's allocations, -1 where there is none."""

    reach: Column
    root_kind: Column
    owner: Column
    pointers: Column
    """Of counted objects: how many words point at each; -1 where that is not known."""
    keeper: Column
    """Of counted objects: the row of the one by which alone each lives, -1: none."""

    def __getitem__(self, rows: Any) -> Reached:
        return Reached(self.reach[rows], self.root_kind[rows], self.owner[rows], self.pointers[rows], self.keeper[rows])


def reached(snapshot: Snapshot, kind: int, records: Records, address: str = "address") -> Reached:
    """Look the records up; what was not looked into has the class UNKNOWN."""
    is_of_kind = snapshot.reach["kind"] == kind
    known = snapshot.reach if is_of_kind.all() else snapshot.reach[is_of_kind]
    nothing = np.zeros(len(records), np.uint8)
    if len(known) == 0:
        return Reached(nothing, nothing, *(np.full(len(records), -1) for _ in range(3)))
    by_site = kind == KIND_ALLOCATION and bool(known["site"].any())
    place = places(known, "address", records, address, by_site=by_site)
    found = place >= 0
    reach = np.where(found, known["reach"][place], 0).astype(np.uint8)
    root = np.where(found, known["root_kind"][place], 0).astype(np.uint8)
    owner = np.full(len(records), -1)
    hangs = np.flatnonzero(reach == Reach.INDIRECT)
    if len(hangs) and len(snapshot.allocations):
        below = np.zeros(len(hangs), snapshot.allocations.dtype)
        below["pid"], below["generation"] = records["pid"][hangs], records["generation"][hangs]
        below["address"] = known["owner"][place[hangs]]
        owner[hangs] = _rows_of_owners(snapshot, below)
    pointers = np.where(found, known["holders"][place].astype(np.int64) - 1, -1)
    keeper = np.full(len(records), -1)
    if kind == KIND_REFERENCE:
        kept = np.flatnonzero(found & (known["keeper"][place] != 0))
        wanted = records[kept].copy()
        wanted[address] = known["keeper"][place[kept]]
        keeper[kept] = places(records, address, wanted, address)
    return Reached(reach, root, owner, pointers, keeper)


def _rows_of_owners(snapshot: Snapshot, wanted: Records) -> npt.NDArray[np.int64]:
    """Return the row of the lost block at each address among the snapshot's allocations, -1: none."""
    lost = snapshot.reach[(snapshot.reach["kind"] == KIND_ALLOCATION) & (snapshot.reach["reach"] == Reach.LOST)]
    by_site = bool(lost["site"].any())
    if by_site:
        place = places(lost, "address", wanted, "address")
        wanted["site"] = np.where(place >= 0, lost["site"][place], 0)
    return places(snapshot.allocations, "address", wanted, "address", by_site=by_site)


def places(
    known: Records, known_address: str, wanted: Records, address: str, *, by_site: bool = False
) -> npt.NDArray[np.int64]:
    """Return the row of `known` with the same process, address space and address, for each row; -1: none. `by_site`:
    and with the same site."""
    names = ("pid", "generation", "site") if by_site else ("pid", "generation")
    return matching_rows(
        [*(known[name] for name in names), known[known_address].astype(np.uint64)],
        [*(wanted[name] for name in names), wanted[address].astype(np.uint64)],
    )


def reachability(reach: int, root_kinds: Iterable[int]) -> tuple[str | None, str | None]:
    """Return the word of a class, and why it is that; None where it was not looked into."""
    if reach == Reach.UNKNOWN:
        return None, None
    roots = " or ".join(_ROOTS[RootKind(kind)] for kind in sorted(set(root_kinds)) if kind)
    return REACHABILITY[reach], _HOW[Reach(reach)].format(roots or "something")


def why_unknown(snapshot: Snapshot) -> dict[tuple[int, int], str]:
    """Return why it was not looked into, by pid and generation."""
    return {(scan.pid, scan.generation): scan.reason for scan in snapshot.scans if scan.reason is not None}


def with_below(leaks: list[Leak]) -> list[Leak]:
    """Sum up what hangs below each lost entry; an entry whose owner is not listed stands for itself."""
    owners = {(leak.space, leak.state, leak.id) for leak in leaks if leak.reachability == LOST}
    sums: dict[_Entry, tuple[int, int]] = {}
    placed = []
    for leak in leaks:
        key = leak.space, leak.state, leak.owner or ""
        if leak.reachability == INDIRECT and key in owners:
            count, size = sums.get(key, (0, 0))
            sums[key] = count + leak.count, size + (leak.bytes or 0)
            placed.append(leak)
        else:
            placed.append(leak if leak.owner is None else replace(leak, owner=None))
    return [_holding(leak, sums) for leak in placed]


def _holding(leak: Leak, sums: dict[_Entry, tuple[int, int]]) -> Leak:
    if leak.reachability != LOST or (leak.space, leak.state, leak.id) not in sums:
        return leak
    count, size = sums[leak.space, leak.state, leak.id]
    return replace(leak, below_count=count, below_bytes=size)


def suppressed_with_owners(leaks: list[Leak]) -> list[Leak]:
    """Set aside what hangs below an entry that was set aside, lives by it, or is its memory: it is the same mistake."""
    objects = {leak.number: leak.suppressed_by for leak in leaks if leak.suppressed_by and leak.number}

    def as_its_objects(leak: Leak) -> Leak:
        if leak.suppressed_by or not leak.objects_in or not all(number in objects for number in leak.objects_in):
            return leak
        return replace(leak, suppressed_by=objects[leak.objects_in[0]])

    leaks = [as_its_objects(leak) for leak in leaks]
    owners = {(k.space, k.id): k.suppressed_by for k in leaks if k.suppressed_by and k.reachability == LOST}

    def above(leak: Leak) -> str | None:
        return objects.get(leak.keeper) or owners.get((leak.space, leak.owner or ""))

    return [
        leak if leak.suppressed_by or not (by := above(leak)) else replace(leak, suppressed_by=by) for leak in leaks
    ]
