"""Trace options: what is to be probed, followed and kept."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from pathlib import Path

from tracer.capture.launch import Streams
from tracer.errors import UsageError
from tracer.kernel.maps import Limits
from tracer.late_dataclasses import dataclass
from tracer.model.selection import KEEPS_ALL, Selection
from tracer.pipeline.catalogue import AUTO, catalogue_of
from tracer.specs.catalogue import Catalogue


@dataclass(frozen=True)
class TraceOptions:
    """The defaults are those of `refleak --exec` and `refleak -p`."""

    references: bool = True
    """Probe the stubs of `refleak.h`."""
    heap: bool = True
    """Probe the malloc family."""
    mappings: bool = True
    """Probe mmap, munmap and mremap."""
    allocators: tuple[Path, ...] = ()
    """Libraries whose malloc family is an allocator."""
    types: tuple[str, ...] = ()
    """Descriptions as of `--type`."""
    specs: tuple[Path, ...] = ()
    """Files of descriptions in TOML."""
    presets: tuple[str, ...] = ()
    """Names of shipped descriptions; `auto` for all."""
    allow_missing: bool = False
    """Whether what the three name may be found nowhere."""
    interpreters: bool = True
    """Show frames of interpreters."""
    reachability: bool = True
    """Hold what is launched at its end, and tell what is lost from what something still points at."""
    stops: bool = True
    """Stop processes that run on while their memory is read; else it is read often enough to be sure."""
    max_scan: int | None = None
    """Bytes: a process of which more is to be read is not looked into. None: what can be read in four seconds."""
    preload: bool = False
    """Have what is launched call the heap through a library, where a probe costs less."""
    follow_forks: bool | None = None
    """Trace forked children too. None: of what is launched and of a tree, and not of what is attached to else."""
    tree: bool = False
    """Attach to the children that run already too, and to theirs."""
    duration_s: float | None = None
    """End the trace after so many seconds. None: when the target has ended."""
    selection: Selection = KEEPS_ALL
    """Which blocks to keep."""
    limits: Limits = field(default_factory=Limits)
    statistics: bool = False
    """Count what the trace itself has to do: `Trace.statistics`."""
    user: str | None = None
    """Who a launched target runs as. None: under sudo the one who called it, else the same as this process."""
    streams: Streams | None = None
    """Standard streams of a launched target. None: those of this process."""

    def __post_init__(self) -> None:
        if self.selection.min_size > self.selection.max_size:
            raise UsageError("--min-size is more than --max-size: no block is kept", "swap them")
        if self.preload and not self.heap:
            raise UsageError("--preload is for blocks, of which --refs-only counts none", "give one of them")

    @cached_property
    def catalogue(self) -> Catalogue:
        """What types, specs and presets describe; read once: a file may be a pipe. Raises SpecInvalid, CannotRead,
        UsageError."""
        return catalogue_of(self.types, self.specs, self.presets)

    @property
    def takes_any_preset(self) -> bool:
        """Whether no preset was chosen by its name."""
        return AUTO in self.presets
