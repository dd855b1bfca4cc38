"""Choices of a trace's options, as the pipeline takes them."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tracer.api import Selection, TraceOptions
from tracer.cli.choices import is_recording
from tracer.errors import CannotWrite
from tracer.kernel.maps import Limits
from tracer.model.visible import visible

if TYPE_CHECKING:
    from tracer.pipeline.recorder import Recorder


def trace_options(arguments: argparse.Namespace) -> TraceOptions:
    """Return what to trace, and how; raises UsageError where no block would be kept."""
    limits = Limits(
        objects=arguments.max_objects, stacks=arguments.max_stacks, threads=arguments.max_threads,
        event_ring_bytes=_power_of_two(arguments.ring_size), freed=arguments.keep_freed,
    )
    if arguments.hold is not None:
        limits = replace(limits, hold_seconds=arguments.hold, look_seconds=arguments.hold)
    return TraceOptions(
        **_probed(arguments), allow_missing=arguments.allow_missing, interpreters=arguments.interpreters == "auto",
        reachability=arguments.reachability == "auto", stops=not arguments.no_stop,
        max_scan=arguments.max_scan, preload=arguments.preload,
        follow_forks=arguments.follow_forks, tree=arguments.tree, duration_s=arguments.duration,
        selection=Selection(arguments.min_size, arguments.max_size, arguments.sample_bytes), limits=limits,
        user=arguments.user, streams=arguments.streams, statistics=arguments.stats,
    )


def probe_options(arguments: argparse.Namespace) -> TraceOptions:
    """Return what the options of `options.add_kinds` and `options.add_specs` ask for."""
    return TraceOptions(**_probed(arguments), interpreters=False)


def _probed(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "references": not arguments.heap_only,
        "heap": not arguments.refs_only,
        "mappings": arguments.mappings and not arguments.refs_only,
        "allocators": tuple(arguments.allocator),
        "types": tuple(arguments.types),
        "specs": tuple(arguments.specs),
        "presets": tuple(arguments.presets),
    }


def _power_of_two(size: int) -> int:
    return 1 << max(12, (size - 1).bit_length())


def recorder_of(arguments: argparse.Namespace, options: TraceOptions) -> Recorder | None:
    """Open the recording that the user wants, if any. Raises CannotWrite before anything is traced."""
    if not is_recording(arguments.output):
        return None
    from tracer.pipeline.recorder import Recorder

    return Recorder(
        arguments.output, options.selection, force=arguments.force, with_symbols=not arguments.no_symbols,
        on_failure=_say_failure,
    )


def _say_failure(error: CannotWrite) -> None:
    print(f"refleak: {visible(str(error))}; the trace goes on", file=sys.stderr)
