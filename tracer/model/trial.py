"""Trials of guessed specs: what their functions did in a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from tracer.late_dataclasses import dataclass
from tracer.model.operations import Operation


@dataclass(frozen=True)
class FunctionTrial:
    """What one function did."""

    calls: int = 0
    unknown: int = 0
    """Of the calls: those for objects that no create of the spec was seen to make."""
    alive: int = 0
    """Of a create: objects that were there at the end."""
    reinitialised: int = 0
    """Of a create: calls that returned an object which was counted already."""
    freed: int = 0
    """Of a create: objects whose memory was freed and that no put had ended."""
    after_zero: int = 0
    """Of a get and a put: calls for objects that had ended; they are no part of `calls`."""
    while_counted: int = 0
    """Of a delete: calls for objects of which references were open."""

    @property
    def ended(self) -> int:
        """Of a create: how many of its objects a put or a delete ended."""
        return max(0, self.calls - self.alive - self.freed - self.reinitialised)


NEVER_CALLED = FunctionTrial()


@dataclass(frozen=True)
class Trial:
    """A run under a guessed spec."""

    command: tuple[str, ...]
    exit_status: int | None
    functions: Mapping[tuple[Operation, str], FunctionTrial] = field(default_factory=dict)
    losses: tuple[str, ...] = ()
    """What of references was lost: then no count proves anything."""

    def of(self, operation: Operation, function: str) -> FunctionTrial:
        return self.functions.get((operation, function), NEVER_CALLED)
