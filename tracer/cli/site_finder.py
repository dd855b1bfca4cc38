"""Wires specs, resolution and placement together: what capture asks for each new binary."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from tracer.capture.binaries import FoundSites
from tracer.capture.instruction_costs import known_costs
from tracer.cli.catalogue import catalogue_of
from tracer.elf.debug_facts import read_debug_facts
from tracer.elf.image import Image
from tracer.elf.symbol_table import STT_FUNC, read_symbol_table
from tracer.elf.unwind_cache import cache_directory
from tracer.guests.lua_layout import lua_version
from tracer.model.operations import Site, Spec
from tracer.model.snapshot import Unresolved
from tracer.sites.costs import CostModel, InstructionClass, default_costs, measured_costs
from tracer.sites.place import place
from tracer.sites.resolve import resolve
from tracer.specs.allocators import HEAP, MAPPINGS
from tracer.specs.catalogue import Catalogue
from tracer.specs.guests import LUA_ENTRY, lua_entries
from tracer.specs.refinement import Refined, refine
from tracer.specs.stubs import STUBS


class SiteFinder:
    """Finds the sites of the chosen kinds in a binary, each placed on its cheapest instruction."""

    def __init__(
        self, *, references: bool, heap: bool, mappings: bool, allocators: Sequence[Path] = (),
        catalogue: Catalogue | None = None, guests: bool = False,
    ) -> None:  # fmt: skip
        self._specs: list[Spec] = [STUBS] if references else []
        self._specs += [HEAP] if heap else []
        self._specs += [MAPPINGS] if mappings else []
        self._catalogue = catalogue or Catalogue()
        self._allocators = {path.resolve() for path in allocators}
        self._guests = guests
        self._costs = cost_model(cache_directory())

    def find(self, image: Image) -> FoundSites:
        """Return the placements in `image`, the functions that cannot be probed, and inlined copies of others."""
        is_allocator = bool(self._allocators) and Path(image.path).resolve() in self._allocators
        specs = [*self._specs, *self._described(image), *self._entries(image)]
        sites, unresolved = resolve(image, specs, allocator=is_allocator)
        refined = self._refined(sites, image)
        unresolved += refined.unresolved
        placements = [place(site, image, self._costs) for site in refined.sites]
        refused = [p for p in placements if not p.cost]
        unresolved += [Unresolved(p.site.function.operation.name.lower(), p.site.function.type_name or "",
                                  p.site.function.function, p.reason) for p in refused]  # fmt: skip
        return FoundSites([p for p in placements if p.cost], unresolved, refined.inlined)

    def _entries(self, image: Image) -> list[Spec]:
        if not self._guests or not read_symbol_table(image).find(LUA_ENTRY):
            return []
        version = lua_version(image.data)
        return [lua_entries(version)] if version is not None else []

    def _described(self, image: Image) -> list[Spec]:
        table = read_symbol_table(image)
        return self._catalogue.specs(lambda pattern: [s.name for s in table.matching(pattern) if s.kind == STT_FUNC])

    def _refined(self, sites: list[Site], image: Image) -> Refined:
        """Ask the DWARF, which takes its time, only of binaries that have described functions."""
        if not any(site.function.group for site in sites):
            return Refined(sites, [], ())
        return refine(sites, self._catalogue.types, read_debug_facts(image))


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
        guests=getattr(arguments, "guest", "off") == "auto",
    )
