"""The profile of a comparison, for pprof: by how much each entry grew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

from tracer.model.comparison import Change, Comparison
from tracer.report.code_layout import CodeLayout
from tracer.report.comparison_words import SHOWN, comparison_verdict
from tracer.report.profile_message import ProfileMessage

SAMPLE_TYPES = (("objects", "count"), ("space", "bytes"))
_MAIN = ("main", "_start")


def write_comparison_pprof(comparison: Comparison, stream: BinaryIO) -> None:
    """Write a sample for what is new, grown, shrunk or gone: objects and bytes after it less those before it.

    Labels: change, kind, type, id.
    """
    changes = [change for word in SHOWN for change in comparison.of(word)]
    layout = CodeLayout((), {frame for change in changes for frame in change.stack})
    profile = ProfileMessage(SAMPLE_TYPES, layout, _program(changes))
    for change in changes:
        labels = {"change": change.word, "kind": change.kind, "type": change.type, "id": change.id}
        profile.sample(change.stack, (change.grown.count, change.grown.bytes or 0), labels, {})
    default = "space" if any(change.grown.bytes for change in changes) else "objects"
    profile.finish([f"refleak: {comparison_verdict(comparison)}"], default)
    profile.write(stream)


def _program(changes: Sequence[Change]) -> str | None:
    """Return the path of a program, of which a comparison knows the stacks only: that of the first main in them."""
    frames = (frame for change in changes for frame in change.stack)
    return next((frame.path for frame in frames if frame.function in _MAIN and frame.path is not None), None)
