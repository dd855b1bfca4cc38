"""Values that a function was called with, and where they are, instruction by instruction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tracer.architecture.current import ARCHITECTURE
from tracer.architecture.instruction import FLAGS, Instruction, Memory, Operand
from tracer.model.operations import Location, LocationKind

Value = tuple[LocationKind, int]
"""A value named by where it was at the function's first instruction."""
_STACK_POINTER, _FRAME_POINTER = ARCHITECTURE.stack_pointer, ARCHITECTURE.frame_pointer
Copy = tuple[Value, int]
"""A value, and how many of its low bytes the copy has."""

_MOVES = frozenset(("mov", "movabs", "movsxd"))
# Instructions whose effects are all in their operands and the registers that the decoder lists.
# Its access flags of memory operands are wrong for some stores, so what it says there is not used.
_KNOWN_NAMES = """
    movzx movsx lea test cmp xor and or add sub adc sbb shl sal shr sar rol ror inc dec neg not imul mul bt bsf bsr
    tzcnt lzcnt bswap cdq cdqe cqo cwde nop endbr64 movd movq movaps movups movapd movupd movdqa movdqu movss movsd
    movhps movlps pxor xorps xorpd por pand pshufd punpcklqdq punpckldq unpcklps unpcklpd
"""
_KNOWN = _MOVES | frozenset(_KNOWN_NAMES.split())
_READS_ONLY = frozenset(("test", "cmp", "bt", "nop", "endbr64", "push"))


class Values:
    """The values of `locations` followed through straight-line code.

    Stack slots are keyed by their distance from where the stack pointer pointed at entry: the return address is 0.
    """

    def __init__(self, locations: Iterable[Location], memory_matters: bool = True) -> None:
        self._memory_matters = memory_matters
        self.depth = 0
        """Bytes from the stack pointer to the return address."""
        self.lost = ""
        """Why a value can no longer be found, or why memory is no longer as it was at entry."""
        self.tested: Value | None = None
        """The pointer whose being NULL the zero flag tells."""
        self._needed: dict[Value, int] = {}
        for location in locations:
            if location.kind in (LocationKind.REGISTER, LocationKind.STACK):
                value, width = _value_of(location), 8 if location.dereference else location.width
                self._needed[value] = max(width, self._needed.get(value, 0))
        self._registers: dict[int, Copy] = {v[1]: (v, 8) for v in self._needed if v[0] == LocationKind.REGISTER}
        self._slots: dict[int, Copy] = {v[1]: (v, 8) for v in self._needed if v[0] == LocationKind.STACK}
        self._lowest_store = 0

    @property
    def uses_red_zone(self) -> bool:
        """Tell whether something was stored below the stack pointer."""
        return self._lowest_store < -self.depth

    def locate(self, location: Location) -> Location:
        """Return where the value of a location at entry is now; only while nothing is lost."""
        if location.kind not in (LocationKind.REGISTER, LocationKind.STACK):
            return location
        value = _value_of(location)
        width = self._needed[value]
        registers = [r for r, copy in self._registers.items() if copy[0] == value and copy[1] >= width]
        if location.kind == LocationKind.REGISTER and location.register in registers:
            return location
        if registers:
            return replace(location, kind=LocationKind.REGISTER, register=min(registers), offset=0)
        slot = max(o for o, copy in self._slots.items() if copy[0] == value and copy[1] >= width)
        return replace(location, kind=LocationKind.STACK, register=0, offset=slot + self.depth)

    def follow(self, instruction: Instruction) -> str:
        """Take in one instruction; return why nothing can be said after it, or nothing."""
        if _FRAME_POINTER in instruction.written:
            return f"`{instruction.text}` changes {ARCHITECTURE.name_of(_FRAME_POINTER)}, by which stacks are unwound"
        if instruction.mnemonic in ("push", "pop"):
            stop = self._push_or_pop(instruction)
        elif _STACK_POINTER in instruction.written and instruction.mnemonic in _KNOWN:
            stop = self._move_stack(instruction)
        elif instruction.mnemonic in _KNOWN or instruction.mnemonic.startswith(("cmov", "set")):
            stop = self._compute(instruction)
        else:
            stop = f"`{instruction.text}` ends the straight-line start"
        self._note_losses(instruction)
        return stop or (f"`{instruction.text}` removes the return address" if self.depth < 0 else "")

    def _push_or_pop(self, instruction: Instruction) -> str:
        operand = instruction.operands[0]
        if (operand.size != 8 and operand.immediate is None) or operand.register == _STACK_POINTER:
            return f"`{instruction.text}` moves the stack"
        if instruction.mnemonic == "push":
            copy = self._read(operand)
            self.depth += 8
            self._store(-self.depth, 8, copy)
        else:
            copy = self._slots.get(-self.depth)
            self._raise_stack(8)
            self._forget_registers(instruction)
            self._write(operand, copy)
        return ""

    def _move_stack(self, instruction: Instruction) -> str:
        destination, *sources = instruction.operands
        if destination.register != _STACK_POINTER or len(sources) != 1:
            return f"`{instruction.text}` moves the stack"
        amount, memory = sources[0].immediate, sources[0].memory
        if instruction.mnemonic == "sub" and amount is not None:
            change = amount
        elif instruction.mnemonic == "add" and amount is not None:
            change = -amount
        elif instruction.mnemonic == "lea" and memory is not None and memory.base == _STACK_POINTER and memory.plain:
            change = -memory.displacement
        else:
            return f"`{instruction.text}` moves the stack"
        if FLAGS in instruction.written:
            self.tested = None
        if change < 0:
            self._raise_stack(-change)
        else:
            self.depth += change
        return ""

    def _raise_stack(self, size: int) -> None:
        self.depth -= size
        self._slots = {offset: copy for offset, copy in self._slots.items() if offset >= -self.depth}
        self._lowest_store = max(self._lowest_store, -self.depth)

    def _compute(self, instruction: Instruction) -> str:
        operands = instruction.operands
        copy: Copy | None = None
        if instruction.mnemonic in _MOVES and len(operands) == 2:
            copy = _narrowed(self._read(operands[1]), min(operand.size for operand in operands))
        if FLAGS in instruction.written:
            self.tested = self._tested_by(instruction)
        self._forget_registers(instruction)
        if operands and instruction.mnemonic not in _READS_ONLY:
            self._write(operands[0], copy)
            if self._memory_matters and operands[0].memory and self._slot(operands[0].memory) is None:
                self.lost = self.lost or f"`{instruction.text}` writes memory"
        return ""

    def _tested_by(self, instruction: Instruction) -> Value | None:
        """Return the value that `test r, r` or `cmp r, 0` compares with NULL."""
        if instruction.mnemonic not in ("test", "cmp"):
            return None
        first, second = instruction.operands
        with_null = first == second if instruction.mnemonic == "test" else second.immediate == 0
        copy = self._read(first) if with_null and first.size == 8 else None
        return copy[0] if copy and copy[1] == 8 else None

    def _forget_registers(self, instruction: Instruction) -> None:
        for register in instruction.written:
            self._registers.pop(register, None)

    def _read(self, operand: Operand) -> Copy | None:
        if operand.register is not None:
            return self._registers.get(operand.register)
        slot = self._slot(operand.memory) if operand.memory else None
        return self._slots.get(slot) if slot is not None else None

    def _write(self, operand: Operand, copy: Copy | None) -> None:
        if operand.register is not None:
            self._registers.pop(operand.register, None)
            if copy is not None and operand.size >= 4:
                self._registers[operand.register] = copy
        elif operand.memory is not None:
            slot = self._slot(operand.memory)
            if slot is not None:
                self._store(slot, operand.size, copy)

    def _slot(self, memory: Memory) -> int | None:
        if memory.base != _STACK_POINTER or not memory.plain:
            return None
        return memory.displacement - self.depth

    def _store(self, slot: int, size: int, copy: Copy | None) -> None:
        self._slots = {o: c for o, c in self._slots.items() if o + c[1] <= slot or slot + size <= o}
        if copy is not None and size >= 4:
            self._slots[slot] = copy
        self._lowest_store = min(self._lowest_store, slot)

    def _note_losses(self, instruction: Instruction) -> None:
        held = [*self._registers.values(), *self._slots.values()]
        for value, width in self._needed.items():
            if not self.lost and not any(copy[0] == value and copy[1] >= width for copy in held):
                self.lost = f"`{instruction.text}` overwrites an argument"


def _value_of(location: Location) -> Value:
    register = location.kind == LocationKind.REGISTER
    return (location.kind, location.register if register else location.offset)


def _narrowed(copy: Copy | None, width: int) -> Copy | None:
    return None if copy is None or width < 4 else (copy[0], min(copy[1], width))
