"""Location expressions: where a variable's value is, as far as a probe can get at it.

Source: DWARF 5, sections 2.5 and 2.6, and GNU's operators of DWARF 4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum

from tracer.dwarf.leb128 import Operands
from tracer.late_dataclasses import dataclass


class Base(Enum):
    REGISTER = "register"
    FRAME = "frame"
    """The canonical frame address of the function at hand."""
    CONSTANT = "constant"
    ADDRESS = "address"
    """A link address."""


@dataclass(frozen=True)
class ValuePlace:
    """A value: the base plus the first of `offsets`; for each further one the pointer there, plus that offset."""

    base: Base
    register: int = 0
    offsets: tuple[int, ...] = (0,)

    def plus(self, amount: int) -> ValuePlace:
        return replace(self, offsets=(*self.offsets[:-1], self.offsets[-1] + amount))

    def dereferenced(self) -> ValuePlace:
        return replace(self, offsets=(*self.offsets, 0))


class Unlocated(Exception):
    """Why a value cannot be had."""


_ADDR, _DEREF, _CONST1U, _CONSTS, _CONSTU = 0x03, 0x06, 0x08, 0x11, 0x10
_FIXED_CONSTANTS = {0x08: (1, False), 0x09: (1, True), 0x0A: (2, False), 0x0B: (2, True), 0x0C: (4, False),
                    0x0D: (4, True), 0x0E: (8, False), 0x0F: (8, True)}  # fmt: skip
_MINUS, _PLUS, _PLUS_UCONST, _NOP = 0x1C, 0x22, 0x23, 0x96
_LIT0, _REG0, _BREG0, _REGX, _FBREG, _BREGX = 0x30, 0x50, 0x70, 0x90, 0x91, 0x92
_CFA, _IMPLICIT_VALUE, _STACK_VALUE, _ADDRX = 0x9C, 0x9E, 0x9F, 0xA1
_GENERAL_REGISTERS = 16
_REASONS = {
    0xA3: "its parameter is known only as it was when the function around it was called",
    0xF3: "its parameter is known only as it was when the function around it was called",
    0xA0: "its parameter points to what the compiler did away with",
    0xF2: "its parameter points to what the compiler did away with",
    0x93: "its parameter is in several pieces",
    0x9D: "its parameter is in several pieces",
}


class _Machine(Operands):
    def __init__(self, expression: bytes, frame_base: ValuePlace | None, indexed: Callable[[int], int]) -> None:
        super().__init__(expression)
        self._frame_base, self._indexed = frame_base, indexed
        self.stack: list[ValuePlace] = []
        self.is_value = False

    def run(self) -> ValuePlace:
        if not self.data:
            raise Unlocated("its parameter was optimised away")
        while self.at < len(self.data):
            code = self.data[self.at]
            self.at += 1
            self._step(code)
        if not self.stack:
            raise Unlocated("its parameter was optimised away")
        return self.stack[-1] if self.is_value else self.stack[-1].dereferenced()

    def _step(self, code: int) -> None:
        if code in _REASONS:
            raise Unlocated(_REASONS[code])
        if _LIT0 <= code < _REG0:
            self._push(Base.CONSTANT, code - _LIT0)
        elif _REG0 <= code < _BREG0 or code == _REGX:
            self._push_register(code - _REG0 if code != _REGX else self.unsigned(), 0)
            self.is_value = True
        elif _BREG0 <= code < _REGX or code == _BREGX:
            register = code - _BREG0 if code != _BREGX else self.unsigned()
            self._push_register(register, self.signed())
        elif code == _STACK_VALUE:
            self.is_value = True
        elif code in (_FBREG, _CFA):
            self._push_frame(code)
        elif code in (_DEREF, _PLUS, _MINUS, _PLUS_UCONST):
            self._calculate(code)
        elif code != _NOP:
            self._push_constant(code)

    def _push_frame(self, code: int) -> None:
        if code == _CFA:
            self._push(Base.FRAME, 0)
            return
        if self._frame_base is None:
            raise Unlocated("where its frame is is not known")
        self.stack.append(self._frame_base.plus(self.signed()))

    def _calculate(self, code: int) -> None:
        if code == _DEREF:
            self.stack[-1] = self.stack[-1].dereferenced()
        elif code == _PLUS_UCONST:
            self.stack[-1] = self.stack[-1].plus(self.unsigned())
        else:
            second, first = self.stack.pop(), self.stack.pop()
            if second.base is not Base.CONSTANT or len(second.offsets) > 1:
                if code == _MINUS or first.base is not Base.CONSTANT or len(first.offsets) > 1:
                    raise Unlocated("its parameter is computed in a way that no probe can follow")
                first, second = second, first
            self.stack.append(first.plus(second.offsets[0] if code == _PLUS else -second.offsets[0]))

    def _push_constant(self, code: int) -> None:
        if code in _FIXED_CONSTANTS:
            size, is_signed = _FIXED_CONSTANTS[code]
            self._push(Base.CONSTANT, int.from_bytes(self.take(size), "little", signed=is_signed))
        elif code == _CONSTU:
            self._push(Base.CONSTANT, self.unsigned())
        elif code == _CONSTS:
            self._push(Base.CONSTANT, self.signed())
        elif code == _ADDR:
            self._push(Base.ADDRESS, int.from_bytes(self.take(8), "little"))
        elif code == _ADDRX:
            self._push(Base.ADDRESS, self._indexed(self.unsigned()))
        elif code == _IMPLICIT_VALUE:
            self._push(Base.CONSTANT, int.from_bytes(self.take(self.unsigned()), "little"))
            self.is_value = True
        else:
            raise Unlocated("its parameter is computed in a way that no probe can follow")

    def _push(self, base: Base, offset: int) -> None:
        self.stack.append(ValuePlace(base, 0, (offset,)))

    def _push_register(self, register: int, offset: int) -> None:
        if register >= _GENERAL_REGISTERS:
            raise Unlocated("its parameter is in a vector register")
        self.stack.append(ValuePlace(Base.REGISTER, register, (offset,)))


def value_of(expression: bytes, frame_base: ValuePlace | None, indexed: Callable[[int], int]) -> ValuePlace:
    """Return where the value is that `expression` describes; raises Unlocated with the reason where it cannot be had.

    `frame_base`: of the function around it; `indexed` gives the link address of an index into .debug_addr.
    """
    try:
        return _Machine(expression, frame_base, indexed).run()
    except (IndexError, ValueError):
        raise Unlocated("its parameter's place makes no sense") from None


def frame_base_of(expression: bytes) -> ValuePlace | None:
    """Return the frame base that DW_AT_frame_base describes: a register means what it points to."""
    machine = _Machine(expression, None, lambda index: index)
    try:
        machine.run()
    except (Unlocated, IndexError, ValueError):
        return None
    return machine.stack[-1]
