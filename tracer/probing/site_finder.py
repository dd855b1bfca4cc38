"""Finder of the sites of one binary: specs, resolution and placement together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tracer.binaries.file_version import FileVersion
from tracer.elf.image import Image
from tracer.elf.symbol_table import STT_FUNC, read_symbol_table
from tracer.interpreters.languages import LANGUAGES
from tracer.model.operations import Placement, Site, Spec
from tracer.model.preload_names import SONAME
from tracer.model.snapshot import UncoveredInstances, Unresolved
from tracer.probing.found_sites import FoundSites, KeptSites
from tracer.sites.costs import CostModel
from tracer.sites.mentions import mentions
from tracer.sites.placement import place
from tracer.sites.raw_calls import find_raw_calls
from tracer.sites.resolve import functions_for, resolve
from tracer.sites.unwinders import find_unwinders, refused_returns
from tracer.specs.allocators import HEAP, MAPPINGS, embedded
from tracer.specs.catalogue import Catalogue
from tracer.specs.stubs import STUBS
from tracer.specs.wrappers import WRAPPERS


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
        self._kept = [
            KeptSites(cache, choice + "interposes" * interposes) for interposes in (False, True)
        ] if cache and not self._catalogue.descriptions else None  # fmt: skip

    def find(self, image: Image, version: FileVersion | None = None, *, interposes: bool = False) -> FoundSites:
        """Return the placements in `image`, the functions that cannot be probed, and copies that no probe covers.

        `version`: of the file that the image is of, where it is one; `interposes`: its malloc is its program's.
        """
        if self._kept is None or version is None:
            return self._look(image, interposes)
        return self._kept[interposes].find(image, version, lambda: self._look(image, interposes))

    def _look(self, image: Image, interposes: bool) -> FoundSites:
        is_allocator = interposes or (bool(self._allocators) and Path(image.path).resolve() in self._allocators)
        described = self._described(image)
        wrappers = [WRAPPERS] if self._preload and image.soname == SONAME else []
        specs = [*self._specs, *wrappers, *described, *self._entries(image), *self._embedded(image)]
        sites, unresolved = resolve(image, specs, allocator=is_allocator)
        sites += self._code_ends(image)
        functions = [f for f in functions_for(image, described, allocator=is_allocator) if f.group]
        copies: Sequence[Placement] = ()
        uncovered: Sequence[UncoveredInstances] = ()
        if any(site.function.group for site in sites) or mentions(image, functions):
            from tracer.probing.described_copies import refined  # with the DWARF's readers, which few traces need

            found = refined(image, self._catalogue.types, self._costs, sites, functions)
            sites, copies, uncovered = [*found.sites], found.placements, found.uncovered
            unresolved += found.unresolved
        placements = [*(place(site, image, self._costs) for site in sites), *copies]
        refused = {p: p.reason for p in placements if not p.cost} | refused_returns(image, placements)
        unresolved += [Unresolved(p.site.function.operation.name.lower(), p.site.function.type_name or "",
                                  p.site.function.function, reason) for p, reason in refused.items()]  # fmt: skip
        return FoundSites(
            tuple(p for p in placements if p not in refused), tuple(unresolved), tuple(uncovered),
            tuple(find_unwinders(image, self._costs)), find_raw_calls(image),
        )  # fmt: skip

    def _entries(self, image: Image) -> list[Spec]:
        found = (language.entries(image) for language in LANGUAGES) if self._interpreters else ()
        return [spec for spec in found if spec is not None]

    def _code_ends(self, image: Image) -> list[Site]:
        found = (language.code_end(image) for language in LANGUAGES) if self._interpreters else ()
        return [site for site in found if site is not None]

    def _described(self, image: Image) -> list[Spec]:
        return self._catalogue.specs(partial(_functions, image))

    def _embedded(self, image: Image) -> list[Spec]:
        """Return the functions of allocators that are linked into it; it may be the library of one."""
        if HEAP not in self._specs:
            return []
        found = embedded(partial(_functions, image))
        return [found] if found is not None else []


def _functions(image: Image, pattern: str) -> list[str]:
    """Return the names of a binary's functions that match a pattern."""
    return [symbol.name for symbol in read_symbol_table(image).matching(pattern) if symbol.kind == STT_FUNC]
