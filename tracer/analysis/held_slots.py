"""Held slots: members in which counted objects are held, or were when a block was freed without a put of them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from tracer.analysis.slots import Keys, member
from tracer.model.holders import SEVERAL, HolderKind
from tracer.model.missing_puts import MissingPuts
from tracer.model.reachability import KIND_REFERENCE
from tracer.model.snapshot import Records, Snapshot

_Object = tuple[int, int, int]
"""Process, address space and address of the counter."""
_NOWHERE: Keys = frozenset()


class HeldSlots:
    """Of the objects of a snapshot: of living blocks where memory was read at the end."""

    def __init__(self, snapshot: Snapshot) -> None:
        holders = snapshot.holders
        in_blocks = (holders["target_kind"] == KIND_REFERENCE) & (holders["kind"] == HolderKind.BLOCK)
        rows = holders[in_blocks & (holders["offset"] != SEVERAL)]
        self._living = _found(rows, "target")
        self._freed = _found(MissingPuts(snapshot).lost(), "address")

    def of(self, record: np.void) -> Keys:
        """Return the keys of the slots of living blocks that hold an object now."""
        return self._living.get(_object(record), _NOWHERE)

    def freed(self, record: np.void) -> Keys:
        """Return the keys of the slots of blocks that were freed, and no put gave back what they had."""
        return self._freed.get(_object(record), _NOWHERE)


def _found(rows: Records, address: str) -> dict[_Object, Keys]:
    found: defaultdict[_Object, set[str]] = defaultdict(set)
    for pid, generation, target, offset in rows[["pid", "generation", address, "offset"]].tolist():
        found[pid, generation, target].add(member(offset))
    return {key: frozenset(keys) for key, keys in found.items()}


def _object(record: np.void) -> _Object:
    return int(record["pid"]), int(record["generation"]), int(record["address"])
