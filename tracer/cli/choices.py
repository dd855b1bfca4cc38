"""Choices of a report's options, as the pipeline takes them."""

from __future__ import annotations

import argparse
from pathlib import Path

from tracer.model.visible import visible
from tracer.pipeline.judge_options import JudgeOptions

SUFFIX = ".refleak"
"""Of a recording."""


def judge_options(arguments: argparse.Namespace) -> JudgeOptions:
    """Return how to name and judge; a comparison has neither a least age nor a baseline."""
    return JudgeOptions(
        tuple(arguments.suppressions), default_suppressions=not arguments.no_default_suppressions,
        demangle=not arguments.no_demangle, debug_directories=tuple(arguments.debug_dir),
        older_ns=getattr(arguments, "older_ns", 0), baseline=getattr(arguments, "baseline", None),
    )


def is_recording(path: Path | None) -> bool:
    return path is not None and path.suffix == SUFFIX


def next_command(recording: Path) -> str:
    return f"refleak report {visible(str(recording))}"


def is_stream(arguments: argparse.Namespace) -> bool:
    """Tell whether the reports are lines of JSON, the last one the whole report."""
    return arguments.interval is not None and arguments.format == "json" and arguments.output is None
