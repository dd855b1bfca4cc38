"""Raw frames: what a symbolizer says of one address, before names are demangled."""

from __future__ import annotations

from collections.abc import Mapping

from tracer.late_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RawFrame:
    """One function at an address: `function` as linked, `start` its first link address.

    Every part is None where it is not known.
    """

    function: str | None = None
    file: str | None = None
    line: int | None = None
    start: int | None = None


Answers = Mapping[int, tuple[RawFrame, ...]]
"""Looked-up link address to its raw frames, innermost inlined one first."""


@dataclass(frozen=True)
class Query:
    """Link addresses to look up in the DWARF of one file; `path` is one that a child process can open."""

    path: str
    addresses: tuple[int, ...]


@dataclass(frozen=True)
class Reply:
    """Answers per query, in the order of the queries; all that was answered before a failure is kept."""

    answers: tuple[Answers, ...]
    failure: str | None = None
    """What went wrong with the tool, fit to follow its name: "died of signal 11"."""
    timed_out: bool = False
