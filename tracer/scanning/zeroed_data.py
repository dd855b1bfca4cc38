"""Zeroed data (.bss) of binaries, which lies behind their mappings in memory that is no file's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from tracer.model.events import ErrorKind
from tracer.model.snapshot import Mapping, Process, Snapshot
from tracer.scanning.surroundings import ModuleTable


def with_zeroed_data(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with it among the mappings of address spaces in which what is no block was freed."""
    freed = snapshot.errors[snapshot.errors["error"] == ErrorKind.INVALID_FREE]
    spaces = set(zip(freed["pid"].tolist(), freed["generation"].tolist(), strict=True))
    if not spaces:
        return snapshot
    modules = ModuleTable(snapshot)
    processes = (one for one in snapshot.processes if one.space in spaces)
    found = [mapping for process in processes for mapping in _zeroed(snapshot, process, modules)]
    return replace(snapshot, mappings=(*snapshot.mappings, *found))


def _zeroed(snapshot: Snapshot, process: Process, modules: ModuleTable) -> Iterator[Mapping]:
    last: dict[int, Mapping] = {}
    for mapping in snapshot.mappings_of.get(process.space, ()):
        if mapping.link_address is not None:
            last[mapping.binary] = max(last.get(mapping.binary, mapping), mapping, key=_place)
    for module in modules.of(process):
        mapping, end = last[int(module["binary"])], int(module["end"])
        size = mapping.end - mapping.start
        if mapping.end < end and mapping.link_address is not None:
            yield replace(
                mapping, start=mapping.end, end=end, file_offset=mapping.file_offset + size, executable=False,
                link_address=mapping.link_address + size,
            )  # fmt: skip


def _place(mapping: Mapping) -> tuple[int, float]:
    """Order by address; the last that was there comes last: the loader makes pieces of what it has mapped."""
    return mapping.end, inf if mapping.until_ns is None else mapping.until_ns
