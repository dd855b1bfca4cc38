"""Wires specs, resolution and placement together: what capture asks for each new binary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tracer.elf.image import Image
from tracer.model.operations import FunctionSpec, Operation, Placement, Spec
from tracer.model.snapshot import Unresolved
from tracer.sites.costs import default_costs
from tracer.sites.place import place
from tracer.sites.resolve import resolve
from tracer.specs.allocators import ALLOCATORS
from tracer.specs.stubs import STUBS

_MAPPINGS = (Operation.MAP, Operation.UNMAP, Operation.REMAP)


class SiteFinder:
    """Finds the sites of the chosen kinds in a binary, each placed on its cheapest instruction."""

    def __init__(self, *, references: bool, heap: bool, mappings: bool, allocators: Sequence[Path] = ()) -> None:
        self._specs = _chosen(references, heap, mappings)
        self._allocators = {path.resolve() for path in allocators}
        self._costs = default_costs()

    def find(self, image: Image) -> tuple[list[Placement], list[Unresolved]]:
        """Return the placements in `image`, and the functions that cannot be probed."""
        is_allocator = bool(self._allocators) and Path(image.path).resolve() in self._allocators
        sites, unresolved = resolve(image, self._specs, allocator=is_allocator)
        return [place(site, image, self._costs) for site in sites], unresolved


def _chosen(references: bool, heap: bool, mappings: bool) -> list[Spec]:
    def wanted(function: FunctionSpec) -> bool:
        return mappings if function.operation in _MAPPINGS else heap

    specs = [STUBS] if references else []
    functions = tuple(function for function in ALLOCATORS.functions if wanted(function))
    return [*specs, replace(ALLOCATORS, functions=functions)] if functions else specs
