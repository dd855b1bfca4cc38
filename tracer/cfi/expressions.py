"""DWARF expressions of call frame information, computed from registers and memory.

DWARF 5, sections 2.5.1 and 6.4.2: no operator there refers to debug information.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from tracer.dwarf.leb128 import Operands

ReadRegister = Callable[[int], int]
ReadWord = Callable[[int, int], int]
"""Reads the number at (address, size)."""

_MASK = (1 << 64) - 1
_SIGN = 1 << 63
_MOST_STEPS = 1000
_CONSTANTS = {0x08: (1, False), 0x09: (1, True), 0x0A: (2, False), 0x0B: (2, True), 0x0C: (4, False), 0x0D: (4, True),
              0x0E: (8, False), 0x0F: (8, True), 0x03: (8, False)}  # fmt: skip


def _signed(value: int) -> int:
    return (value & _MASK) - ((value & _SIGN) << 1)


def _divided(first: int, second: int) -> int:
    quotient = abs(_signed(first)) // abs(_signed(second))
    return quotient if (_signed(first) < 0) == (_signed(second) < 0) else -quotient


_ON_TWO: dict[int, Callable[[int, int], int]] = {
    0x1A: operator.and_, 0x1B: _divided, 0x1C: operator.sub, 0x1D: operator.mod, 0x1E: operator.mul,
    0x21: operator.or_, 0x22: operator.add, 0x27: operator.xor,
    0x24: lambda a, b: a << b if b < 64 else 0,
    0x25: lambda a, b: a >> min(b, 64),
    0x26: lambda a, b: _signed(a) >> min(b, 63),
    0x29: lambda a, b: a == b,
    0x2A: lambda a, b: _signed(a) >= _signed(b),
    0x2B: lambda a, b: _signed(a) > _signed(b),
    0x2C: lambda a, b: _signed(a) <= _signed(b),
    0x2D: lambda a, b: _signed(a) < _signed(b),
    0x2E: lambda a, b: a != b,
}  # fmt: skip
_ON_ONE: dict[int, Callable[[int], int]] = {
    0x19: lambda a: abs(_signed(a)),
    0x1F: operator.neg,
    0x20: operator.invert,
}


class _Machine(Operands):
    def __init__(self, expression: bytes, register: ReadRegister, memory: ReadWord, stack: list[int]) -> None:
        super().__init__(expression)
        self._register, self._memory = register, memory
        self._stack = stack

    def run(self) -> int:
        for _ in range(_MOST_STEPS):
            if self.at == len(self.data):
                return self._stack[-1]
            code = self.data[self.at]
            self.at += 1
            self._step(code)
        raise ValueError("an expression does not end")

    def _step(self, code: int) -> None:
        stack = self._stack
        if 0x30 <= code < 0x50:  # DW_OP_lit0, ...
            stack.append(code - 0x30)
        elif 0x70 <= code < 0x90:  # DW_OP_breg0, ...
            self._push(self._register(code - 0x70) + self.signed())
        elif code == 0x92:  # DW_OP_bregx
            number = self.unsigned()
            self._push(self._register(number) + self.signed())
        elif code in _CONSTANTS:
            size, is_signed = _CONSTANTS[code]
            self._push(int.from_bytes(self.take(size), "little", signed=is_signed))
        elif code in _ON_TWO:
            second, first = stack.pop(), stack.pop()
            self._push(_ON_TWO[code](first, second))
        elif code in _ON_ONE:
            self._push(_ON_ONE[code](stack.pop()))
        elif code in (0x06, 0x94):  # DW_OP_deref, DW_OP_deref_size
            size = 8 if code == 0x06 else self.take(1)[0]
            self._push(self._memory(stack.pop(), size))
        elif code == 0x23:  # DW_OP_plus_uconst
            self._push(stack.pop() + self.unsigned())
        elif code in (0x10, 0x11):  # DW_OP_constu, DW_OP_consts
            self._push(self.unsigned() if code == 0x10 else self.signed())
        elif code in (0x28, 0x2F):  # DW_OP_bra, DW_OP_skip
            self._jump(is_taken=code == 0x2F or stack.pop() != 0)
        else:
            self._rearrange(code)

    def _rearrange(self, code: int) -> None:
        stack = self._stack
        if code in (0x12, 0x14, 0x15):  # DW_OP_dup, DW_OP_over, DW_OP_pick
            depth = {0x12: 0, 0x14: 1}.get(code)
            stack.append(stack[-1 - (self.take(1)[0] if depth is None else depth)])
        elif code == 0x13:  # DW_OP_drop
            stack.pop()
        elif code == 0x16:  # DW_OP_swap
            stack[-2], stack[-1] = stack[-1], stack[-2]
        elif code == 0x17:  # DW_OP_rot
            stack[-3], stack[-2], stack[-1] = stack[-1], stack[-3], stack[-2]
        elif code != 0x96:  # DW_OP_nop
            raise ValueError(f"operator {code:#x} is not understood")

    def _jump(self, *, is_taken: bool) -> None:
        distance = int.from_bytes(self.take(2), "little", signed=True)
        if is_taken:
            self.at += distance
        if not 0 <= self.at <= len(self.data):
            raise ValueError("an expression jumps out of itself")

    def _push(self, value: int) -> None:
        self._stack.append(value & _MASK)


def computed(expression: bytes, register: ReadRegister, memory: ReadWord, initial: int | None = None) -> int:
    """Return what an expression computes, 64 bits without sign. `initial`: what is on its stack before, the CFA.

    Raises ValueError where it is not understood or makes no sense; what the two readers raise goes through.
    """
    try:
        return _Machine(expression, register, memory, [] if initial is None else [initial]).run()
    except (IndexError, ZeroDivisionError) as error:
        raise ValueError(str(error)) from None
