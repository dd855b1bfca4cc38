"""Held slots: the members in which living blocks hold counted objects, where memory was read at the end."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from tracer.analysis.slots import Keys, member
from tracer.model.holders import SEVERAL, HolderKind
from tracer.model.reachability import KIND_REFERENCE
from tracer.model.snapshot import Records

_Object = tuple[int, int, int]
"""Process, address space and address of the counter."""
_NOWHERE: Keys = frozenset()


class HeldSlots:
    """`holders`: of a snapshot."""

    def __init__(self, holders: Records) -> None:
        in_blocks = (holders["target_kind"] == KIND_REFERENCE) & (holders["kind"] == HolderKind.BLOCK)
        rows = holders[in_blocks & (holders["offset"] != SEVERAL)]
        found: defaultdict[_Object, set[str]] = defaultdict(set)
        for pid, generation, target, offset in rows[["pid", "generation", "target", "offset"]].tolist():
            found[pid, generation, target].add(member(offset))
        self._found = {key: frozenset(keys) for key, keys in found.items()}

    def of(self, record: np.void) -> Keys:
        """Return the keys of the slots that hold an object now."""
        key = int(record["pid"]), int(record["generation"]), int(record["address"])
        return self._found.get(key, _NOWHERE)
