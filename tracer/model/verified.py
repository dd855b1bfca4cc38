"""Verified BPF programs: what the kernel's verifier says of each."""

from __future__ import annotations

from tracer.late_dataclasses import dataclass


@dataclass(frozen=True)
class Verified:
    """A program that was shown to the verifier."""

    name: str
    instructions: int
    followed: int = 0
    """Instructions that the verifier went through: each as often as it did."""
    stack_bytes: int = 0
    """Of all its functions together."""
    refusal: str = ""
    """Why the kernel does not take it; empty where it does."""
    log: str = ""
    """All that the verifier said of a program that it refused."""
    is_needed: bool = True
    """No trace is possible without it."""
