"""Finder of the sites of one binary: specs, resolution and placement together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tracer.binaries.file_version import FileVersion
from tracer.dwarf.debug_facts import read_debug_facts
from tracer.elf.image import Image
from tracer.elf.symbol_table import STT_FUNC, read_symbol_table
from tracer.interpreters.languages import LANGUAGES
from tracer.model.operations import FunctionSpec, Site, Spec
from tracer.model.preload_names import SONAME
from tracer.model.snapshot import Unresolved
from tracer.probing.found_sites import FoundSites, KeptSites
from tracer.sites.costs import CostModel
from tracer.sites.instance_probes import PlacedInstances, place_instances
from tracer.sites.instance_search import instances_of, mentions, names_of_instances
from tracer.sites.placement import place
from tracer.sites.raw_forks import find_raw_forks
from tracer.sites.resolve import functions_for, resolve
from tracer.sites.unwinders import find_unwinders, refused_returns
from tracer.specs.allocators import HEAP, MAPPINGS
from tracer.specs.catalogue import Catalogue
from tracer.specs.refinement import following, refinement
from tracer.specs.stubs import STUBS
from tracer.specs.wrappers import WRAPPERS


@dataclass(frozen=True)
class _Refined:
    sites: list[Site]
    instances: PlacedInstances
    unresolved: tuple[Unresolved, ...]


class SiteFinder:
    """Finds the sites of the chosen kinds in a binary, each placed on its cheapest instruction."""

    def __init__(
        self, costs: CostModel, *, references: bool, heap: bool, mappings: bool, allocators: Sequence[Path] = (),
        catalogue: Catalogue | None = None, interpreters: bool = False, preload: bool = False,
        cache: Path | None = None,
    ) -> None:  # fmt: skip
        """`cache`: the folder where the sites of binaries are kept for other traces, unless functions are described."""
        self._specs: list[Spec] = [STUBS] if references else []
        self._specs += [HEAP] if heap else []
        self._specs += [MAPPINGS] if mappings else []
        self._catalogue = catalogue or Catalogue()
        self._allocators = {path.resolve() for path in allocators}
        self._interpreters = interpreters
        self._preload = preload
        self._costs = costs
        choice = repr((references, heap, mappings, sorted(self._allocators), interpreters, preload,
                       sorted(costs.costs.items()), sorted(costs.forbidden)))  # fmt: skip
        self._kept = KeptSites(cache, choice) if cache and not self._catalogue.descriptions else None

    def find(self, image: Image, version: FileVersion | None = None) -> FoundSites:
        """Return the placements in `image`, the functions that cannot be probed, and copies that no probe covers.

        `version`: of the file that the image is of, where it is one.
        """
        if self._kept is None or version is None:
            return self._look(image)
        return self._kept.find(image, version, lambda: self._look(image))

    def _look(self, image: Image) -> FoundSites:
        is_allocator = bool(self._allocators) and Path(image.path).resolve() in self._allocators
        described = self._described(image)
        wrappers = [WRAPPERS] if self._preload and image.soname == SONAME else []
        specs = [*self._specs, *wrappers, *described, *self._entries(image)]
        sites, unresolved = resolve(image, specs, allocator=is_allocator)
        sites += self._code_ends(image)
        functions = [f for f in functions_for(image, described, allocator=is_allocator) if f.group]
        refined = self._refined(sites, functions, image)
        placements = [*(place(site, image, self._costs) for site in refined.sites), *refined.instances.placements]
        unresolved += refined.unresolved
        refused = {p: p.reason for p in placements if not p.cost} | refused_returns(image, placements)
        unresolved += [Unresolved(p.site.function.operation.name.lower(), p.site.function.type_name or "",
                                  p.site.function.function, reason) for p, reason in refused.items()]  # fmt: skip
        return FoundSites(
            tuple(p for p in placements if p not in refused), tuple(unresolved), tuple(refined.instances.uncovered),
            tuple(find_unwinders(image, self._costs)), find_raw_forks(image),
        )  # fmt: skip

    def _refined(self, sites: list[Site], functions: list[FunctionSpec], image: Image) -> _Refined:
        """Ask the DWARF, which takes its time, only of binaries that have described functions."""
        present = {site.function.group for site in sites if site.function.group}
        if not present and not mentions(image, functions):
            return _Refined(sites, PlacedInstances(), ())
        facts = read_debug_facts(image)
        present |= {function.group for function in functions if names_of_instances(function, facts)}
        found = refinement(present, self._catalogue.types, facts)
        sites = [replace(site, function=found.apply(site.function)) for site in sites]
        inlined = instances_of([found.apply(function) for function in functions], facts, image)
        instances = place_instances(inlined, sites, image, self._costs)
        groups = {function.group for function, _ in inlined}
        sites = [replace(site, function=following(site.function, instances.unseen, groups)) for site in sites]
        followed = [replace(p, site=replace(p.site, function=following(p.site.function, instances.unseen, groups)))
                    for p in instances.placements]  # fmt: skip
        return _Refined(sites, replace(instances, placements=followed), found.unresolved)

    def _entries(self, image: Image) -> list[Spec]:
        found = (language.entries(image) for language in LANGUAGES) if self._interpreters else ()
        return [spec for spec in found if spec is not None]

    def _code_ends(self, image: Image) -> list[Site]:
        found = (language.code_end(image) for language in LANGUAGES) if self._interpreters else ()
        return [site for site in found if site is not None]

    def _described(self, image: Image) -> list[Spec]:
        table = read_symbol_table(image)
        return self._catalogue.specs(lambda pattern: [s.name for s in table.matching(pattern) if s.kind == STT_FUNC])
