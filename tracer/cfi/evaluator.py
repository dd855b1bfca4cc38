"""CFI evaluator: the row of a function that holds at an address, with all registers.

DWARF 5, section 6.4, for all registers and all rules. The rows of the unwinder in BPF (tracer.cfi.rows) know three
registers; what they cannot express is followed with this, one row at a time.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import NamedTuple

from tracer.cfi.call_frames import Fde
from tracer.dwarf.leb128 import Operands
from tracer.late_dataclasses import dataclass


class Where(Enum):
    """How `Saved.value` says where a register's value is, or what it is."""

    UNDEFINED = "undefined"
    AT_OFFSET = "at CFA + value"
    IS_OFFSET = "CFA + value"
    REGISTER = "in register `value`"
    AT_EXPRESSION = "at what the expression computes"
    IS_EXPRESSION = "what the expression computes"


class Saved(NamedTuple):
    where: Where
    value: int | bytes = 0


@dataclass
class RegisterRow:
    """The canonical frame address (CFA) as (register, offset) or an expression; None where it is not defined.

    `saved`: by DWARF number; a register that is not in it has the caller's value still.
    """

    cfa: tuple[int, int] | bytes | None = None
    saved: dict[int, Saved] = field(default_factory=dict)

    def copy(self) -> RegisterRow:
        return RegisterRow(self.cfa, dict(self.saved))


def row_at(function: Fde, address: int) -> RegisterRow | None:
    """Return the row that holds at an address of a function; None where its instructions are not understood."""
    try:
        run = _Run(function, RegisterRow())
        run.execute(function.common, None)
        run.initial = run.row.copy()
        run.execute(function.instructions, address - function.start)
    except (IndexError, ValueError):
        return None
    return run.row


_ADVANCES = {0x02: 1, 0x03: 2, 0x04: 4}
_ON_REGISTER = frozenset((0x05, 0x06, 0x07, 0x08, 0x09, 0x10, 0x11, 0x14, 0x15, 0x16, 0x2F))


class _Run(Operands):
    def __init__(self, function: Fde, initial: RegisterRow) -> None:
        super().__init__(b"")
        self._code_factor, self._data_factor = function.code_factor, function.data_factor
        self.initial, self.row = initial, initial.copy()
        self._remembered: list[RegisterRow] = []

    def execute(self, program: bytes, until: int | None) -> None:
        """Run instructions up to the row behind the distance `until`; None for all of them."""
        self.data, self.at, distance = program, 0, 0
        while self.at < len(program):
            operation = program[self.at]
            self.at += 1
            step = self._advance(operation)
            if step is None:
                self._change(operation)
                continue
            distance += step * self._code_factor
            if until is not None and distance > until:
                return

    def _advance(self, operation: int) -> int | None:
        if 0x40 <= operation < 0x80:
            return operation & 0x3F
        if operation not in _ADVANCES:
            return None
        return int.from_bytes(self.take(_ADVANCES[operation]), "little")

    def _change(self, operation: int) -> None:
        if 0x80 <= operation < 0xC0:
            self._save(operation & 0x3F, Saved(Where.AT_OFFSET, self.unsigned() * self._data_factor))
        elif operation >= 0xC0:
            self._save(operation & 0x3F, self.initial.saved.get(operation & 0x3F))
        elif operation == 0x0A:
            self._remembered.append(self.row.copy())
        elif operation == 0x0B:  # with the CFA, as all producers mean it
            self.row = self._remembered.pop()
        elif operation == 0x2E:
            self.unsigned()
        elif operation in _ON_REGISTER:
            register = self.unsigned()
            self._save(register, self._place(operation, register))
        elif operation != 0x00:
            self.row.cfa = self._cfa(operation)

    def _save(self, register: int, saved: Saved | None) -> None:
        if saved is None:
            self.row.saved.pop(register, None)
        else:
            self.row.saved[register] = saved

    def _place(self, operation: int, register: int) -> Saved | None:
        """Return where a register is; None for "unchanged"."""
        if operation in (0x05, 0x11, 0x2F):
            value = self.signed() if operation == 0x11 else self.unsigned()
            return Saved(Where.AT_OFFSET, value * self._data_factor * (-1 if operation == 0x2F else 1))
        if operation in (0x14, 0x15):
            value = self.unsigned() if operation == 0x14 else self.signed()
            return Saved(Where.IS_OFFSET, value * self._data_factor)
        if operation == 0x09:
            return Saved(Where.REGISTER, self.unsigned())
        if operation in (0x10, 0x16):
            return Saved(Where.AT_EXPRESSION if operation == 0x10 else Where.IS_EXPRESSION, self.take(self.unsigned()))
        if operation == 0x07:
            return Saved(Where.UNDEFINED)
        return None if operation == 0x08 else self.initial.saved.get(register)

    def _cfa(self, operation: int) -> tuple[int, int] | bytes:
        if operation == 0x0C:
            return self.unsigned(), self.unsigned()
        if operation == 0x0F:
            return self.take(self.unsigned())
        if operation == 0x12:
            return self.unsigned(), self.signed() * self._data_factor
        before = self.row.cfa
        if not isinstance(before, tuple):
            raise ValueError("the CFA is no register and offset")
        register, offset = before
        if operation == 0x0D:
            return self.unsigned(), offset
        if operation == 0x0E:
            return register, self.unsigned()
        if operation == 0x13:
            return register, self.signed() * self._data_factor
        raise ValueError(f"call frame instruction {operation:#x} is not understood")
