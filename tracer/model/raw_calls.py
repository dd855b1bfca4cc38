"""Raw calls: system calls that a program makes past libc's functions, which would be probed."""

from __future__ import annotations

from tracer.late_dataclasses import dataclass


@dataclass(frozen=True)
class RawCalls:
    """Their places in a binary, as file offsets."""

    forks: tuple[int, ...] = ()
    """Where children take their first step."""
    ends: tuple[int, ...] = ()
    """Where a process comes to before it ends."""
