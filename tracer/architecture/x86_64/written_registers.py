"""Registers that instructions write, as far as values are followed through them."""

from __future__ import annotations

from collections.abc import Iterable

from tracer.architecture.instruction import Line
from tracer.architecture.x86_64.instructions import written_register
from tracer.architecture.x86_64.registers import Register

_RESULT = int(Register.RAX)
_READ_ONLY = (
    "cmp", "test", "push", "nop", "bt", "call", "ucomiss", "ucomisd", "comiss", "comisd", "prefetch", "endbr64",
)  # fmt: skip
_ALSO = {
    "mul": (0, 1), "imul": (0, 1), "div": (0, 1), "idiv": (0, 1), "cqo": (1,), "cdq": (1,), "cdqe": (0,),
    "syscall": (0, 2, 11), "rdtsc": (0, 1), "cpuid": (0, 1, 2, 3), "xgetbv": (0, 1), "cmpxchg": (0,),
}  # fmt: skip
"""DWARF numbers of what some instructions write beside their first operand."""
_STRINGS = ("movs", "stos", "cmps", "scas", "lods")


def moves(line: Line) -> bool:
    """Tell whether an instruction only copies or loads a word, in any case or in some."""
    return line.name == "mov" or line.name.startswith("cmov")


def clears(line: Line) -> bool:
    first, _, second = line.operands.partition(", ")
    return (line.name == "xor" and first == second) or (line.name == "mov" and second == "0")


def written(line: Line) -> Iterable[int]:
    """Return the registers that an instruction writes, but for what a call does not preserve."""
    if line.name.startswith(_READ_ONLY) or line.name.startswith("j"):
        return _ALSO.get(line.name, ())
    if line.name.startswith(_STRINGS):
        return (int(Register.RDI), int(Register.RSI), int(Register.RCX), _RESULT)
    first, _, second = line.operands.partition(", ")
    both = (first, second) if line.name in ("xchg", "xadd") else (first,)
    found = [number for name in both if (number := written_register(name)) is not None]
    return (*found, *_ALSO.get(line.name, ()))


def writes_memory(line: Line) -> bool:
    """Tell whether an instruction may write to memory."""
    to = line.operands.partition(", ")[0]
    if line.name.startswith(_STRINGS):
        return True
    return "[" in to and not line.name.startswith((*_READ_ONLY, "j"))
