"""The architecture that this refleak traces, and what follows from its calling convention."""

from __future__ import annotations

from tracer.architecture.architecture import Architecture
from tracer.architecture.x86_64.architecture import X86
from tracer.model.operations import Location, LocationKind

ARCHITECTURE: Architecture = X86()


def argument(n: int, width: int = 8) -> Location:
    """Return the location of integer argument `n` (from 0) at a function's first instruction."""
    registers = ARCHITECTURE.argument_registers
    if n < len(registers):
        return Location(LocationKind.REGISTER, registers[n], width=width)
    return Location(LocationKind.STACK, offset=8 + 8 * (n - len(registers)), width=width)
