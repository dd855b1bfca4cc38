"""Probed binaries: what `refleak probes` lists."""

from __future__ import annotations

from tracer.late_dataclasses import dataclass
from tracer.model.operations import Placement
from tracer.model.snapshot import UncoveredInstances, Unresolved


@dataclass(frozen=True)
class ProbedBinary:
    """A binary of the target with the probes that it would get, and the functions that no probe covers."""

    name: str
    path: str
    placements: tuple[Placement, ...] = ()
    unresolved: tuple[Unresolved, ...] = ()
    uncovered: tuple[UncoveredInstances, ...] = ()
