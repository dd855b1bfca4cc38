"""Code object of a script, as the kernel side copied it."""

from __future__ import annotations

from tracer.late_dataclasses import dataclass
from tracer.model.records import InterpreterRecord


@dataclass(frozen=True)
class ScriptCode:
    kind: InterpreterRecord
    name: str | None
    """None where it cannot be told."""
    file: str | None
    first_line: int
    table: bytes
    extra: bytes
    is_whole: bool
    """Whether the tables were copied to their end."""
