"""Surroundings of blocks: what words of an address space belong to that are in none, binaries and freed blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache

import numpy as np

from tracer.elf.image import PT_LOAD, PT_TLS, Image
from tracer.errors import RefleakError
from tracer.model.events import ErrorKind
from tracer.model.operations import Operation
from tracer.model.snapshot import Binary, Mapping, Process, Records, Snapshot
from tracer.reachability.holders import FREED, GONE, MODULE, Surroundings
from tracer.scanning.outstanding import rows_of

_MOST_BSS = 1 << 32
_ENDED_BY_FREE = (ErrorKind.FREED_WHILE_COUNTED, ErrorKind.FREED_PAST_COUNTER)


class ModuleTable:
    """The modules of all address spaces of a snapshot. `asks_for_usable_size` tells it of a binary, by its id."""

    def __init__(self, snapshot: Snapshot, asks_for_usable_size: Callable[[int], bool] = lambda _: True) -> None:
        self._binaries = {binary.id: binary for binary in snapshot.binaries}
        self._mappings = snapshot.mappings_of
        self._extents: dict[int, tuple[int, int]] = {}
        self._asks = cache(asks_for_usable_size)

    def of(self, process: Process) -> Records:
        """Return MODULEs of an address space at its end, by start."""
        placed: dict[int, list[Mapping]] = {}
        for mapping in self._linked(process):
            if mapping.until_ns is None or (process.ended_ns is not None and mapping.until_ns >= process.ended_ns):
                placed.setdefault(mapping.binary, []).append(mapping)
        known = ((self._binaries[id_], found) for id_, found in placed.items() if id_ in self._binaries)
        rows = [self._module(binary, found, process) for binary, found in known]
        return np.sort(np.array(rows, MODULE), order="start")

    def uses_slack(self, process: Process) -> bool:
        """Tell whether a binary that is or was in an address space may use what glibc rounds sizes up to."""
        placed = {mapping.binary for mapping in self._linked(process)}
        return any(map(self._asks, placed))

    def _linked(self, process: Process) -> Iterator[Mapping]:
        """Return those of an address space of which it is known where they lie as linked."""
        of_space = self._mappings.get(process.space, ())
        return (mapping for mapping in of_space if mapping.link_address is not None)

    def _module(
        self, binary: Binary, placed: Iterable[Mapping], process: Process
    ) -> tuple[int, int, int, int, int, bool]:
        first = min(placed, key=lambda mapping: mapping.start)
        bias = first.start - (first.link_address or 0)
        end = max(mapping.end for mapping in placed)
        if binary.id not in self._extents:
            self._extents[binary.id] = _extent(binary)
        storage, last = self._extents[binary.id]
        if 0 < bias + last - end < _MOST_BSS:
            end = bias + last
        return first.start, end, bias & ((1 << 64) - 1), binary.id, storage, binary.path == process.executable


def _extent(binary: Binary) -> tuple[int, int]:
    """Return how many bytes of thread-local storage a file has, and the link address where its last segment ends."""
    storage = last = 0
    with suppress(RefleakError, OSError, ValueError), Image.open(binary.open_path or binary.path) as image:
        for segment in image.segments:
            if segment.type == PT_TLS:
                alignment = max(segment.alignment, 1)
                storage = -(-segment.memory_size // alignment) * alignment
        last = max((s.link_address + s.memory_size for s in image.segments if s.type == PT_LOAD), default=0)
    return storage, last


def surroundings(snapshot: Snapshot, process: Process, modules: ModuleTable, own: Records) -> Surroundings:
    """Return them as they were at the end of an address space. `own`: its FREED_BLOCKs."""
    space = process.space
    blocks = np.zeros(len(own), FREED)
    for name, source in (("address", "address"), ("size", "size"), ("stack", "stack"), ("released", "release"),
                         ("time_ns", "time_ns")):  # fmt: skip
        blocks[name] = own[source]
    return Surroundings(
        modules.of(process), blocks, _gone(snapshot, space, own), uses_slack=modules.uses_slack(process)
    )  # fmt: skip


def _gone(snapshot: Snapshot, space: tuple[int, int], freed: Records) -> Records:
    """Return the counted objects whose memory was freed, with the block that each was in."""
    errors = snapshot.errors
    if not len(errors):
        return np.zeros(0, GONE)
    chosen = (errors["operation"] == Operation.ERROR) & np.isin(errors["error"], _ENDED_BY_FREE)
    rows = []
    for error in rows_of(errors[chosen], space):
        inside = (freed["address"] <= error["address"]) & (error["address"] - freed["address"] < freed["size"])
        found = np.flatnonzero(inside & (freed["time_ns"] == error["time_ns"]))
        if len(found):
            rows.append((error["address"], freed["address"][found[0]], freed["size"][found[0]]))
    return np.array(rows, GONE)
