"""Described functions as the DWARF of a binary has them: their types' members, and their inlined copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tracer.dwarf.debug_facts import read_debug_facts
from tracer.elf.image import Image
from tracer.late_dataclasses import dataclass
from tracer.model.operations import FunctionSpec, Placement, Site
from tracer.model.snapshot import UncoveredInstances, Unresolved
from tracer.sites.costs import CostModel
from tracer.sites.instance_probes import place_instances
from tracer.sites.instance_search import instances_of, names_of_instances
from tracer.specs.description import DescribedType
from tracer.specs.refinement import following, refinement


@dataclass(frozen=True)
class Refined:
    """Sites as the DWARF knows them, and the placements of inlined copies beside them."""

    sites: Sequence[Site]
    placements: Sequence[Placement]
    uncovered: Sequence[UncoveredInstances]
    unresolved: Sequence[Unresolved]


def refined(
    image: Image, types: Mapping[int, DescribedType], costs: CostModel, sites: Sequence[Site],
    functions: Sequence[FunctionSpec],
) -> Refined:  # fmt: skip
    """Read the DWARF, which takes its time. `types` by group; `functions`: all described ones."""
    facts = read_debug_facts(image)
    present = {site.function.group for site in sites if site.function.group}
    present |= {function.group for function in functions if names_of_instances(function, facts)}
    found = refinement(present, types, facts)
    sites = [replace(site, function=found.apply(site.function)) for site in sites]
    inlined = instances_of([found.apply(function) for function in functions], facts, image)
    instances = place_instances(inlined, sites, image, costs)
    groups = {function.group for function, _ in inlined}
    sites = [replace(site, function=following(site.function, instances.unseen, groups)) for site in sites]
    followed = [replace(p, site=replace(p.site, function=following(p.site.function, instances.unseen, groups)))
                for p in instances.placements]  # fmt: skip
    return Refined(sites, followed, instances.uncovered, found.unresolved)
