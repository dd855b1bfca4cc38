"""Counters in code: what a function adds to a word of its first argument's object, or sets it to.

Code is followed as it stands, without its jumps, up to the first return: registers, and places below a frame pointer,
that hold the argument; registers that hold a constant, or such a word with something added to it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracer.architecture.current import ARCHITECTURE
from tracer.architecture.instruction import Instruction, Memory, Operand
from tracer.late_dataclasses import dataclass

_MOST_BYTES = 1 << 13
_MOST_INSTRUCTIONS = 1 << 11
_MOST_OF_A_METHOD = 48
_RETURNS = ("ret", "retq")
_COUNTER_BYTES = (4, 8)
_POINTER_BYTES = 8


@dataclass(frozen=True)
class _Value:
    """What a register holds: a word of the object with something added, or, with no offset, a constant."""

    offset: int | None
    added: int


def added_to_counter(code: bytes, address: int, added: int) -> int | None:
    """Return at which offset of its object a method first adds a number (1 or -1); None where none is seen."""
    for offset, value in _stores(code, address, _MOST_OF_A_METHOD):
        if value.offset == offset and value.added == added:
            return offset
    return None


def set_at(code: bytes, address: int, offset: int) -> int | None:
    """Return the constant that a function, or constructor, last sets a word of its object to; None where it does not,
    or where something else is stored there."""
    last = None
    for at, value in _stores(code, address, _MOST_INSTRUCTIONS):
        if at == offset:
            last = value.added if value.offset is None else None
    return last


def _stores(code: bytes, address: int, most: int) -> Iterator[tuple[int, _Value]]:
    """Yield the offsets in the object that are written, and what is: as far as it can be told."""
    objects = {ARCHITECTURE.argument_registers[0]}
    kept: set[Memory] = set()
    values: dict[int, _Value] = {}
    for line in ARCHITECTURE.decode(code[:_MOST_BYTES], address, most):
        if line.name in _RETURNS:
            return
        into, source = (*line.operands, None, None)[:2]
        if into is not None and (at := _offset(into, objects)) is not None:
            stored = _stored(line, at, source, values)
            if stored is not None:
                yield from _halves(at, stored, into.size)
        moved = _moved(line, into, source, objects, values)
        is_object = line.name == "mov" and source is not None and source.size == _POINTER_BYTES and (
            source.register in objects or source.memory in kept
        )
        if is_object and into is not None and into.memory is not None and into.memory.displacement < 0:
            kept.add(into.memory)
        for register in line.written:
            objects.discard(register)
            values.pop(register, None)
        if line.name == "call":
            objects &= set(ARCHITECTURE.preserved_registers)
            values = {r: v for r, v in values.items() if r in ARCHITECTURE.preserved_registers}
        if into is not None and into.register is not None:
            if is_object:
                objects.add(into.register)
            elif moved is not None:
                values[into.register] = moved


def _halves(at: int, stored: _Value, size: int) -> Iterator[tuple[int, _Value]]:
    """Yield what is stored, word by word: a compiler writes two constants at once."""
    if stored.offset is not None:
        yield at, stored
        return
    for half in range(size // 4):
        yield at + 4 * half, _Value(None, _signed(stored.added >> 32 * half))


def _offset(operand: Operand, objects: set[int]) -> int | None:
    memory = operand.memory
    if memory is None or not memory.plain or memory.base not in objects or operand.size not in _COUNTER_BYTES:
        return None
    return memory.displacement


def _stored(line: Instruction, at: int, source: Operand | None, values: dict[int, _Value]) -> _Value | None:
    """Return what an instruction writes at an offset; None where it writes nothing that can be told."""
    constant = _constant(source, values)
    match line.name:
        case "inc":
            return _Value(at, 1)
        case "dec":
            return _Value(at, -1)
        case "add" | "xadd" if constant is not None:
            return _Value(at, _signed(constant))
        case "sub" if constant is not None:
            return _Value(at, -_signed(constant))
        case "mov" | "xchg" if constant is not None:
            return _Value(None, constant)
        case "mov" if source is not None and source.register in values:
            return values[source.register]
    return None


def _moved(
    line: Instruction, into: Operand | None, source: Operand | None, objects: set[int], values: dict[int, _Value]
) -> _Value | None:  # fmt: skip
    """Return what is in the register that an instruction writes, behind it."""
    if into is None or into.register is None:
        return None
    before, constant = values.get(into.register), _constant(source, values)
    match line.name:
        case "mov" if source is not None and (at := _offset(source, objects)) is not None:
            return _Value(at, 0)
        case "mov" | "movabs" if source is not None:
            return values.get(source.register) if source.register is not None else _immediate(source)
        case "lea" if source is not None and source.memory is not None and source.memory.plain:
            held = values.get(source.memory.base) if source.memory.base is not None else None
            return None if held is None else _Value(held.offset, held.added + source.memory.displacement)
        case "add" if before is not None and constant is not None:
            return _Value(before.offset, before.added + _signed(constant))
        case "sub" if before is not None and constant is not None:
            return _Value(before.offset, before.added - _signed(constant))
        case "inc" | "dec" if before is not None:
            return _Value(before.offset, before.added + (1 if line.name == "inc" else -1))
        case "xor" if source is not None and source.register == into.register:
            return _Value(None, 0)
    return None


def _immediate(operand: Operand) -> _Value | None:
    return None if operand.immediate is None else _Value(None, operand.immediate)


def _constant(operand: Operand | None, values: dict[int, _Value]) -> int | None:
    if operand is None:
        return None
    if operand.immediate is not None:
        return operand.immediate
    held = values.get(operand.register) if operand.register is not None else None
    return held.added if held is not None and held.offset is None else None


def _signed(number: int) -> int:
    """Return a constant of 32 bits as it is counted with: 0xffffffff is -1."""
    return (number + 0x80000000 & 0xFFFFFFFF) - 0x80000000
