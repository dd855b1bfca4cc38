"""Wires specs, resolution and placement together: what capture asks for each new binary."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from tracer.capture.instruction_costs import known_costs
from tracer.cli.catalogue import catalogue_of
from tracer.elf.image import Image
from tracer.elf.unwind_cache import cache_directory
from tracer.model.operations import Placement, Spec
from tracer.model.snapshot import Unresolved
from tracer.sites.costs import CostModel, InstructionClass, default_costs, measured_costs
from tracer.sites.place import place
from tracer.sites.resolve import resolve
from tracer.specs.allocators import HEAP, MAPPINGS
from tracer.specs.catalogue import Catalogue
from tracer.specs.stubs import STUBS


class SiteFinder:
    """Finds the sites of the chosen kinds in a binary, each placed on its cheapest instruction."""

    def __init__(self, *, references: bool, heap: bool, mappings: bool, allocators: Sequence[Path] = (),
                 catalogue: Catalogue | None = None) -> None:
        self._specs: list[Spec] = [STUBS] if references else []
        self._specs += [HEAP] if heap else []
        self._specs += [MAPPINGS] if mappings else []
        self._specs += (catalogue or Catalogue()).specs()
        self._allocators = {path.resolve() for path in allocators}
        self._costs = cost_model(cache_directory())

    def find(self, image: Image) -> tuple[list[Placement], list[Unresolved]]:
        """Return the placements in `image`, and the functions that cannot be probed."""
        is_allocator = bool(self._allocators) and Path(image.path).resolve() in self._allocators
        sites, unresolved = resolve(image, self._specs, allocator=is_allocator)
        placements = [place(site, image, self._costs) for site in sites]
        refused = [p for p in placements if not p.cost]
        unresolved += [Unresolved(p.site.function.operation.name.lower(), p.site.function.type_name or "",
                                  p.site.function.function, p.reason) for p in refused]  # fmt: skip
        return [p for p in placements if p.cost], unresolved


def cost_model(cache: Path) -> CostModel:
    """Return what probes cost on this kernel, as measured; what is known of all kernels where that is not possible."""
    measured = known_costs(cache)
    if not measured:
        return default_costs()
    return measured_costs({InstructionClass(name): nanoseconds for name, nanoseconds in measured.items()})


def site_finder(arguments: argparse.Namespace) -> SiteFinder:
    """Return the finder that the options of `options.add_kinds` ask for."""
    return SiteFinder(
        references=not arguments.heap_only,
        heap=not arguments.refs_only,
        mappings=arguments.mappings and not arguments.refs_only,
        allocators=tuple(arguments.allocator),
        catalogue=catalogue_of(arguments),
    )
