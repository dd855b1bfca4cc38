"""Code that was made at run time, as it was known when it ran."""

from __future__ import annotations

from tracer.late_dataclasses import dataclass


@dataclass(frozen=True)
class GeneratedFrame:
    """A frame whose name only the running program could tell. `offset`: of the address in the function."""

    function: str | None
    file: str | None = None
    line: int | None = None
    language: str | None = None
    offset: int | None = None
    why_unknown: str | None = None
