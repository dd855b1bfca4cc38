"""Checks of the machine: the lines of `refleak doctor`."""

from __future__ import annotations

from enum import StrEnum

from tracer.late_dataclasses import dataclass


class CheckState(StrEnum):
    OK = "ok"
    MISSING = "missing"
    UNTESTED = "untested"
    """It could not be tested with these privileges."""


@dataclass(frozen=True)
class Check:
    """One thing that tracing needs or profits from."""

    name: str
    state: CheckState
    meaning: str
    """What was found, and what follows from it."""
    remedy: str = ""
    """What to install or do; empty where nothing is to be done."""
    exit_code: int = 0
    """Status of a trace that fails for want of it; 0 where a trace goes on without."""

    @property
    def is_obstacle(self) -> bool:
        return self.state is CheckState.MISSING and self.exit_code != 0
