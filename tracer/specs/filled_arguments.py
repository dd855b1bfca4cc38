"""Filled arguments: functions that set up what their first argument points at, or clear it, as their code shows.

A function that only gives a pointer back there (an out parameter) writes at its very beginning and nowhere else. So
what tells is a store further on, by a register that still holds the argument.
"""

from __future__ import annotations

from tracer.architecture.current import ARCHITECTURE
from tracer.architecture.instruction import Instruction, Operand

_MOST_BYTES = 1 << 14
_MOST_INSTRUCTIONS = 1 << 12
_POINTER_BYTES = 8


def fills_first_argument(code: bytes, address: int) -> bool:
    """Tell whether a function stores into what its first argument points at, beyond the first word of it; False where
    it cannot be told. Registers are followed as the code stands, without its jumps."""
    same = {ARCHITECTURE.argument_registers[0]}
    for line in ARCHITECTURE.decode(code[:_MOST_BYTES], address, _MOST_INSTRUCTIONS):
        into = line.operands[0] if line.operands else None
        if into is not None and _is_store(line, into, same):
            return True
        copied = line.name == "mov" and len(line.operands) > 1 and line.operands[1].register in same
        same -= line.written
        if line.name == "call":
            same &= set(ARCHITECTURE.preserved_registers)
        if copied and into is not None and into.register is not None and into.size == _POINTER_BYTES:
            same.add(into.register)
        if not same:
            return False
    return False


def calls_others(code: bytes, address: int) -> bool:
    """Tell whether a function calls or jumps to another one; what does neither gives nothing back."""
    end = address + len(code)
    for line in ARCHITECTURE.decode(code[:_MOST_BYTES], address, _MOST_INSTRUCTIONS):
        to = line.operands[0].immediate if line.operands else None
        if line.name == "call" or (line.name == "jmp" and to is not None and not address <= to < end):
            return True
    return False


def _is_store(line: Instruction, into: Operand, same: set[int]) -> bool:
    place = into.memory
    if place is None or not line.name.startswith("mov"):
        return False
    return place.plain and place.base in same and place.displacement >= _POINTER_BYTES
