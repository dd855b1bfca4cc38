"""Site finder of a trace's options, with the costs of probes on this kernel."""

from __future__ import annotations

from pathlib import Path

from tracer.architecture.current import ARCHITECTURE
from tracer.architecture.instruction import InstructionClass
from tracer.files.cache_folder import cache_directory
from tracer.kernel.instruction_costs import known_costs
from tracer.pipeline.trace_options import TraceOptions
from tracer.probing.site_finder import SiteFinder
from tracer.sites.costs import CostModel, default_costs, measured_costs


def cost_model(cache: Path) -> CostModel:
    """Return the costs of probes as measured on this kernel, or if that is not possible, those of every kernel."""
    measured = known_costs(cache)
    if not measured:
        return default_costs()
    return measured_costs({InstructionClass(name): nanoseconds for name, nanoseconds in measured.items()})


def site_finder(options: TraceOptions) -> SiteFinder:
    """Return the finder of all that the options ask for."""
    ARCHITECTURE.prepare_to_decode()
    cache = cache_directory()
    return SiteFinder(
        cost_model(cache),
        references=options.references,
        heap=options.heap,
        mappings=options.mappings,
        allocators=options.allocators,
        catalogue=options.catalogue,
        interpreters=options.interpreters,
        preload=options.preload,
        cache=cache,
    )
