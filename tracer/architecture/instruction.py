"""Instructions in our own terms: registers by DWARF number, direct branch targets."""

from __future__ import annotations

from enum import StrEnum

from tracer.late_dataclasses import dataclass

FLAGS = -1
"""Stands for the flags among the registers that an instruction writes."""


@dataclass(frozen=True)
class Memory:
    """An address operand; `base` is a DWARF number, None for none, or for what is no general register."""

    base: int | None
    displacement: int
    plain: bool
    """Neither index nor segment: the address is base + displacement."""


@dataclass(frozen=True)
class Operand:
    size: int
    register: int | None = None
    memory: Memory | None = None
    immediate: int | None = None


@dataclass(frozen=True)
class Instruction:
    address: int
    raw: bytes
    mnemonic: str
    text: str
    operands: tuple[Operand, ...]
    written: frozenset[int]
    """DWARF numbers of the registers it writes, and FLAGS."""

    @property
    def end(self) -> int:
        return self.address + len(self.raw)

    @property
    def name(self) -> str:
        """The mnemonic without prefixes."""
        return self.mnemonic.rsplit(" ", 1)[-1]


@dataclass(frozen=True)
class Flow:
    """Where the direct branches of a function go; `certain` unless others may land anywhere in it."""

    targets: frozenset[int]
    certain: bool


@dataclass(frozen=True, slots=True)
class Line:
    """An instruction of which only the flow of control is of interest."""

    address: int
    end: int
    name: str
    """Without prefixes."""
    operands: str
    target: int | None
    """Of a direct jump or call."""
    is_padding: bool = False

    @property
    def is_indirect_jump(self) -> bool:
        return self.name == "jmp" and self.target is None


@dataclass(frozen=True, slots=True)
class NumberedCall:
    """A system call whose number stands in the code: by the instruction, or by libc's function for any of them."""

    number: int
    loads_at: int
    """Where its number is loaded."""
    behind: int
    is_function: bool
    target: int | None = None
    slot: int | None = None
    """Of a call of the function: what is called, or the address where that stands."""


class InstructionClass(StrEnum):
    """Instructions that the kernel treats alike."""

    NOP5 = "nop5"
    NOP10 = "nop10"
    NOP = "nop"
    PUSH = "push"
    CALL = "call"
    JUMP = "jump"
    BRANCH = "branch"
    OTHER = "other"
