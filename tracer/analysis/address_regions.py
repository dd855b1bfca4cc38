"""Regions that an address of the target lies in: a live block, or the data of a binary."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import PurePath

import numpy as np

from tracer.model.snapshot import Mapping, Records, Snapshot

_LOADERS = ("ld-linux*", "ld-2.*.so", "ld.so*", "ld64.so*")
"""The dynamic loader's own malloc takes its blocks from behind its data."""


class Places:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._paths = {binary.id: binary.path for binary in snapshot.binaries}
        self._allocations = snapshot.allocations
        self._mapped = snapshot.mapped

    @cached_property
    def _blocks(self) -> Records:
        """In order of address; made when first asked for, since there may be millions and no error."""
        blocks = self._allocations
        return blocks[np.lexsort([blocks["address"], blocks["generation"], blocks["pid"]])]

    def block_around(self, event: np.void) -> np.void | None:
        """Return the live ALLOCATION_RECORD that the event's address is inside of, but not its start."""
        at = self._find(event)
        if at == 0:
            return None
        block: np.void = self._blocks[at - 1]
        same = block["pid"] == event["pid"] and block["generation"] == event["generation"]
        distance = int(event["address"]) - int(block["address"])
        inside = same and block["time_ns"] <= event["time_ns"] and 0 < distance < int(block["size"])
        return block if inside and block["group"] == event["group"] else None

    def block_of_another(self, event: np.void) -> np.void | None:
        """Return the live ALLOCATION_RECORD that another allocator made at the event's address."""
        for block in self._blocks[self._find(event) :]:
            if any(block[name] != event[name] for name in ("pid", "generation", "address")):
                return None
            if block["group"] != event["group"] and block["time_ns"] <= event["time_ns"]:
                found: np.void = block
                return found
        return None

    def mapping_at(self, event: np.void) -> np.void | None:
        """Return the MAPPED_RECORD of memory that the target mapped itself and that the event's address lies in."""
        rows, address = self._mapped, event["address"]
        same = (rows["pid"] == event["pid"]) & (rows["generation"] == event["generation"])
        inside = (rows["start"] <= address) & (address < rows["start"] + rows["length"])
        found = np.flatnonzero(same & inside & (rows["time_ns"] <= event["time_ns"]))
        return rows[found[0]] if len(found) else None

    def _find(self, event: np.void) -> int:
        """Return the index of the first block that is not before the event's address."""
        blocks = self._blocks
        first, end = 0, len(blocks)
        key = (int(event["pid"]), int(event["generation"]), int(event["address"]))
        while first < end:
            middle = (first + end) // 2
            at = (int(blocks["pid"][middle]), int(blocks["generation"][middle]), int(blocks["address"][middle]))
            first, end = (middle + 1, end) if at < key else (first, middle)
        return first

    def binary_at(self, event: np.void) -> str | None:
        """Return the name of the binary that the event's address is in, by its mappings at that time."""
        mapping = self._of_binary(event)
        name = PurePath(self._paths.get(mapping.binary, "")).name if mapping is not None else ""
        return name if name and not any(fnmatchcase(name, loader) for loader in _LOADERS) else None

    def is_code(self, event: np.void) -> bool:
        """Tell whether the event's address is in a binary's code."""
        mapping = self._of_binary(event)
        return mapping is not None and mapping.executable

    def _of_binary(self, event: np.void) -> Mapping | None:
        address, time_ns = int(event["address"]), int(event["time_ns"])
        of_space = self._snapshot.mappings_of.get((int(event["pid"]), int(event["generation"])), ())
        return next((one for one in of_space if one.holds(address, time_ns)), None)
