"""Returned numbers: functions that give back no pointer, as their code shows where nothing else tells their types.

A pointer fills its register. Code that writes the lower half of it alone, and returns, gives back a number or a status:
on x86-64 that makes the upper half zero, where no program's memory is.
"""

from __future__ import annotations

from tracer.architecture.current import ARCHITECTURE
from tracer.architecture.instruction import Instruction

_MOST_BYTES = 1 << 16
_MOST_INSTRUCTIONS = 1 << 14
_POINTER_BYTES = 8
_LEAVES = ("jmp", "call", "syscall", "ud2", "hlt")
"""What an instruction does not simply come before the next one by, or what may write the result elsewhere."""


def returns_number(code: bytes, address: int) -> bool:
    """Tell whether some way through a function ends with a number as its result; False where it cannot be told."""
    lines = ARCHITECTURE.decode(code[:_MOST_BYTES], address, _MOST_INSTRUCTIONS)
    ends = (at for at, line in enumerate(lines) if line.name in ("ret", "retq"))
    return any(_is_number(lines, at) for at in ends)


def _is_number(lines: list[Instruction], end: int) -> bool:
    """Tell whether the last that was written to the result before a return, on the way that needs no jump, is one."""
    for line in reversed(lines[:end]):
        if line.name in (*_LEAVES, "ret", "retq"):
            return False
        if ARCHITECTURE.result_register in line.written:
            return _writes_part(line)
    return False


def _writes_part(line: Instruction) -> bool:
    """Tell whether an instruction writes the lower half of the result alone; a zero may be the null pointer, and a
    small number an address that stands for something."""
    into = line.operands[0] if line.operands else None
    if into is None or into.register != ARCHITECTURE.result_register or into.size >= _POINTER_BYTES:
        return False
    source = line.operands[1] if len(line.operands) > 1 else None
    if source is None:
        return True
    if line.name == "mov" and source.immediate is not None:
        return bool(source.immediate & 0x80000000)
    return not (line.name in ("xor", "sub") and source.register == into.register)
