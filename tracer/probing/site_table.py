"""The table of sites that the probes index by their cookie, and the types that sites name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from tracer.binaries.open_binaries import OpenBinary
from tracer.interpreters.languages import layout_number
from tracer.kernel.maps import Maps
from tracer.model import records
from tracer.model.operations import COUNTING, FunctionSpec, Location, Operation, Placement, SiteFlag
from tracer.model.preload_names import C_LIBRARY
from tracer.model.snapshot import EVERY_KIND, Coverage, Loss, Records, SiteInfo, UncoveredInstances, Unresolved
from tracer.probing.embedded_allocators import has_embedded
from tracer.probing.replacements import is_replacement


def type_hash(name: str) -> int:
    """Return the number by which records name a type that a spec gives by name."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def sees_ends(binary: OpenBinary) -> bool:
    """Tell whether a site of a binary sees the ends of an interpreter's code."""
    return any(p.site.function.operation == Operation.CODE_END for _, p in binary.placements)


class SiteTable:
    """Sites are numbered from 1 and never removed."""

    def __init__(self, maps: Maps) -> None:
        self._rows = maps.view("SITES", records.SITE, records.MAX_SITES)
        self._shared = maps.view("SHARED", records.SHARED, 1)
        self.infos: list[SiteInfo] = [SiteInfo(0, "", "", None)]
        self.types: dict[int, str] = {}
        self.refused = 0
        self.unresolved: list[Unresolved] = []
        self.uncovered: list[UncoveredInstances] = []

    @property
    def count(self) -> int:
        return len(self.infos) - 1

    @property
    def coverage(self) -> Coverage:
        """What was found in all binaries, and what could not be probed."""
        return Coverage(self.count, tuple(dict.fromkeys(self.unresolved)), tuple(self.uncovered))

    @property
    def losses(self) -> Iterator[Loss]:
        if self.refused:
            yield Loss("site not probed: too many", self.refused, "give fewer specs", EVERY_KIND)

    def add(self, binary: OpenBinary, placements: Sequence[Placement]) -> None:
        """Enter the sites of a binary; those that no longer fit are counted in `refused`."""
        for placement in placements:
            index = len(self.infos)
            if index >= records.MAX_SITES:
                self.refused += 1
                continue
            spec = placement.site.function
            if spec.operation in COUNTING:
                self._shared["counts_references"] = 1
            self._rows[index : index + 1] = self._row(placement)
            name, module = _shown(spec, binary)
            self.infos.append(SiteInfo(spec.operation, name, module, spec.type_name,
                                       bool(spec.flags & SiteFlag.COUNTER), placement.site.link_address,
                                       int(spec.memory)))  # fmt: skip
            binary.placements.append((index, placement))
        if placements and (is_replacement(binary) or has_embedded(binary)):
            self._shared["tells_heap"] = 1

    def leave_out(self, placements: Iterable[Placement], reason: str) -> None:
        """Note that sites have no probe."""
        functions = (placement.site.function for placement in placements)
        self.unresolved += [
            Unresolved(f.operation.name.lower(), f.type_name or "", f.function, reason) for f in functions
        ]

    def _row(self, placement: Placement) -> Records:
        spec = placement.site.function
        row = np.zeros(1, records.SITE)
        row["operation"], row["flags"], row["group"] = int(spec.operation), int(spec.flags), spec.group
        row["return_distance"] = placement.return_distance
        row["failure"] = int(spec.failure)
        if spec.type_name is not None and spec.operation <= Operation.DELETE:
            row["type"] = type_hash(spec.type_name)
            self.types[type_hash(spec.type_name)] = spec.type_name
        if spec.operation == Operation.INTERPRETER:
            row["type"] = layout_number(spec.type_name)
        for name in ("object", "counter", "count", "size", "name", "holder"):
            row[name] = _location(getattr(placement, name))
        return row


def _shown(spec: FunctionSpec, binary: OpenBinary) -> tuple[str, str]:
    """Return the function that a site is of and the name of its binary: of a wrapper, the function that it wraps."""
    if spec.flags & SiteFlag.WRAPPER and spec.type_name is not None:
        return spec.type_name, C_LIBRARY
    return spec.function, Path(binary.path).name


def _location(at: Location) -> tuple[int, int, int, int, int, int]:
    return (int(at.kind), int(at.register), int(at.dereference), at.width, at.offset, at.adjust)
