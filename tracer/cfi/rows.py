"""The instructions of call frame information, run into rows.

DWARF 5, section 6.4.2, and the GNU extensions of the LSB. Only what the kernel side's unwinder needs is
tracked: the canonical frame address (CFA) and where frame pointer, stack pointer and return address of the caller are.
"""

from __future__ import annotations

from array import array
from typing import Literal, NamedTuple, TypeAlias

from tracer.architecture.current import ARCHITECTURE
from tracer.dwarf import leb128

FRAME_POINTER, STACK_POINTER = ARCHITECTURE.frame_pointer, ARCHITECTURE.stack_pointer
RETURN_ADDRESS = ARCHITECTURE.return_address
_OFFSET = 0x80
"""DW_CFA_offset, with the register in the low bits."""
_OFFSETS = (_OFFSET | FRAME_POINTER, _OFFSET | RETURN_ADDRESS, _OFFSET | STACK_POINTER)

Saved: TypeAlias = int | bytes | Literal["same", "undefined", "elsewhere"]
"""Where a register of the caller is: at CFA + int, at the address that an expression (bytes) computes, or
unchanged, lost, or in a place that is not followed (another register, a computed value)."""


class State(NamedTuple):
    """What holds from one instruction on.

    `register` is the number of the register that the CFA is `offset` away from, or the expression that computes it.
    """

    register: int | bytes
    offset: int
    fp: Saved
    return_address: Saved
    sp: Saved


UNSET = State(-1, 0, "same", "same", "same")
UNREADABLE = State(-1, 0, "elsewhere", "elsewhere", "elsewhere")

_Fields: TypeAlias = tuple[int | bytes, int, Saved, Saved, Saved]
_CLOSING = b"\x41"  # DW_CFA_advance_loc, by 1
_ADVANCES = {0x02: 1, 0x03: 2, 0x04: 4}


class CfiRows:
    """The rows of every distinct program, in flat arrays.

    Program p's rows are `first_rows[p]` to `first_rows[p + 1]`; a row is its distance from the start of the function
    in `distances` (bytes, ascending, the first is 0) and an index into `states` in `indexes`. `states` are pairs of
    a State and whether it belongs to a signal frame. Program 0 is the unreadable one.
    """

    def __init__(self) -> None:
        self.first_rows = array("I", (0, 1))
        self.distances = array("I", (0,))
        self.indexes = array("I", (0,))
        self.states: list[tuple[State, bool]] = [(UNREADABLE, False)]
        self._known: tuple[dict[_Fields, int], dict[_Fields, int]] = ({}, {})

    def add(self, program: bytes, code_factor: int, data_factor: int, initial: State, signal: bool) -> int:
        """Run a program from `initial` on and return its number; 0 where it is damaged or not understood."""
        mark = len(self.distances)
        try:
            self._run(program, code_factor, data_factor, initial, signal)
        except (IndexError, ValueError, OverflowError):
            del self.distances[mark:], self.indexes[mark:]
            return 0
        self.first_rows.append(len(self.distances))
        return len(self.first_rows) - 2

    def last_state(self, program: int) -> State:
        return self.states[self.indexes[self.first_rows[program + 1] - 1]][0]

    def _run(self, program: bytes, code_factor: int, data_factor: int, initial: State, signal: bool) -> None:
        """Append a program's rows.

        One loop with everything in locals: a large library has two million instructions. An advance put behind the
        program closes the last row.
        """
        register, offset, fp, return_address, sp = initial
        saves_fp, saves_return, saves_sp = _OFFSETS
        known, states = self._known[signal], self.states
        add_distance, add_index = self.distances.append, self.indexes.append
        remembered: list[_Fields] = []
        closed = program + _CLOSING
        at, end, distance, last, operation = 0, len(closed), 0, -1, 0
        while at < end:
            operation = closed[at]
            at += 1
            if operation == 0x0E:  # DW_CFA_def_cfa_offset
                offset = closed[at]
                at += 1
                if offset >= 0x80:
                    offset, at = leb128.unsigned(closed, at - 1)
                continue
            if 0x40 < operation < 0x80:  # DW_CFA_advance_loc
                step = (operation & 0x3F) * code_factor
            elif 0x80 <= operation < 0xC0:  # DW_CFA_offset
                value = closed[at]
                at += 1
                if value >= 0x80:
                    value, at = leb128.unsigned(closed, at - 1)
                if operation == saves_fp:
                    fp = value * data_factor
                elif operation == saves_return:
                    return_address = value * data_factor
                elif operation == saves_sp:
                    sp = value * data_factor
                continue
            elif operation in _ADVANCES:
                start, at = at, at + _ADVANCES[operation]
                step = int.from_bytes(closed[start:at], "little") * code_factor
            else:
                fields = (register, offset, fp, return_address, sp)
                fields, at = _step(operation, closed, at, data_factor, fields, initial, remembered)
                register, offset, fp, return_address, sp = fields
                continue
            if step:
                key = (register, offset, fp, return_address, sp)
                index = known.get(key)
                if index is None:
                    index = known[key] = len(states)
                    states.append((State(*key), signal))
                if index != last:
                    add_distance(distance)
                    add_index(index)
                    last = index
                distance += step
        if operation != _CLOSING[0]:
            raise IndexError("the program ends inside an instruction")


def _step(
    operation: int,
    program: bytes,
    at: int,
    data_factor: int,
    fields: _Fields,
    initial: State,
    remembered: list[_Fields],
) -> tuple[_Fields, int]:
    """Run one of the rarer instructions; return the fields after it and where it ends."""
    if operation >= 0xC0:  # DW_CFA_restore
        return _save(fields, operation & 0x3F, None, initial), at
    if operation in (0x00, 0x40):  # DW_CFA_nop, an advance by nothing
        return fields, at
    if operation == 0x0A:  # DW_CFA_remember_state
        remembered.append(fields)
        return fields, at
    if operation == 0x0B:  # DW_CFA_restore_state
        return remembered.pop(), at
    if operation == 0x2E:  # DW_CFA_GNU_args_size
        return fields, leb128.unsigned(program, at)[1]
    if operation in (0x0C, 0x0D, 0x0F, 0x12, 0x13):
        return _define(operation, program, at, data_factor, fields)
    number, at = leb128.unsigned(program, at)
    place, at = _place(operation, program, at, data_factor)
    return _save(fields, number, place, initial), at


def _define(operation: int, program: bytes, at: int, data_factor: int, fields: _Fields) -> tuple[_Fields, int]:
    """Run an instruction that defines the CFA."""
    register, offset, fp, return_address, sp = fields
    if operation == 0x0F:  # DW_CFA_def_cfa_expression
        register, at = _block(program, at)
    elif operation != 0x13:  # not DW_CFA_def_cfa_offset_sf, which keeps the register
        register, at = leb128.unsigned(program, at)
    if operation == 0x0C:  # DW_CFA_def_cfa
        offset, at = leb128.unsigned(program, at)
    elif operation in (0x12, 0x13):  # DW_CFA_def_cfa_sf
        value, at = leb128.signed(program, at)
        offset = value * data_factor
    return (register, offset, fp, return_address, sp), at


def _place(operation: int, program: bytes, at: int, data_factor: int) -> tuple[Saved | None, int]:
    """Return where an instruction says that a register is, None for DW_CFA_restore_extended.

    Raises ValueError for an instruction that is not understood (DW_CFA_set_loc and those of other machines).
    """
    value: int
    if operation == 0x05:  # DW_CFA_offset_extended
        value, at = leb128.unsigned(program, at)
        return value * data_factor, at
    if operation == 0x11:  # DW_CFA_offset_extended_sf
        value, at = leb128.signed(program, at)
        return value * data_factor, at
    if operation == 0x2F:  # DW_CFA_GNU_negative_offset_extended
        value, at = leb128.unsigned(program, at)
        return -value * data_factor, at
    if operation == 0x06:  # DW_CFA_restore_extended
        return None, at
    if operation == 0x07:
        return "undefined", at
    if operation == 0x08:
        return "same", at
    if operation in (0x09, 0x14, 0x15):  # DW_CFA_register, DW_CFA_val_offset, DW_CFA_val_offset_sf
        _, at = leb128.unsigned(program, at)
        return "elsewhere", at
    if operation == 0x10:  # DW_CFA_expression
        return _block(program, at)
    if operation == 0x16:  # DW_CFA_val_expression
        _, at = _block(program, at)
        return "elsewhere", at
    raise ValueError(f"call frame instruction {operation:#x} is not understood")


def _block(program: bytes, at: int) -> tuple[bytes, int]:
    size, at = leb128.unsigned(program, at)
    if at + size > len(program):
        raise IndexError("an expression ends behind its program")
    return program[at : at + size], at + size


def _save(fields: _Fields, number: int, place: Saved | None, initial: State) -> _Fields:
    register, offset, fp, return_address, sp = fields
    if number == FRAME_POINTER:
        fp = initial.fp if place is None else place
    elif number == RETURN_ADDRESS:
        return_address = initial.return_address if place is None else place
    elif number == STACK_POINTER:
        sp = initial.sp if place is None else place
    return register, offset, fp, return_address, sp
