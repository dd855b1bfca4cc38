"""Copies of a program in which one call is made twice.

The call goes through a detour, which notes the arguments and jumps on to the function: it returns to behind the call,
as ever. There another jump leads to the detour again, which makes the call once more with the same arguments, and then
does what stood where that jump now is. So whoever looks sees two calls of the same instruction, with the return address
of both in the function that makes them, the stack as it was, and no frame of the detour. The program goes on with what
the first call returned.

What is noted stands 1 MB and more below the stack pointer, where nothing else is in use: so threads, and calls that
are made while one is under way, do not share it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from call_sites import CALL_BYTES, Code, Instruction, room

BELOW = 1 << 20
FIRST, SECOND = 0x46495253, 0x5345434F
"""What is noted while a call is under way: no program has it there by chance."""
REGISTERS = (7, 6, 2, 1, 8, 9)
"""Numbers of the registers of the arguments: rdi, rsi, rdx, rcx, r8, r9."""
RAX = 0
STATE, RESULT, *ARGUMENTS = (place * ((1 << 16) + 8) for place in range(2 + len(REGISTERS)))
"""Places of what is noted: far apart, or those of a call within the call would be among them."""
ONE_IN_FOUR = b"\x50\x52\x0f\x31\xc1\xe8\x06\xa8\x03\x5a\x58"
"""push %rax; push %rdx; rdtsc; shr $6, %eax; test $3, %al; pop %rdx; pop %rax"""
JUMP, CALL = b"\xe9", b"\xe8"
EQUAL, NOT_EQUAL = b"\x0f\x84", b"\x0f\x85"
ADDRESS_BYTES = 4


class NoRoom(ValueError):
    """What stands behind a call cannot be moved, or the detour has no place."""


@dataclass
class Assembly:
    """Machine code for a link address, which grows."""

    start: int
    code: bytes = b""

    @property
    def end(self) -> int:
        return self.start + len(self.code)

    def jump(self, opcode: bytes, to: int) -> None:
        self.code += opcode + struct.pack("<i", to - (self.end + len(opcode) + ADDRESS_BYTES))

    def call_as_if_at(self, return_to: int, function: int) -> None:
        """Call a function, which returns to `return_to`: push %rax; lea return_to, %rax; xchg %rax, (%rsp); jmp."""
        self.code += b"\x50"
        self.jump(b"\x48\x8d\x05", return_to)
        self.code += b"\x48\x87\x04\x24"
        self.jump(JUMP, function)

    def store(self, register: int, place: int) -> None:
        self._move(0x89, register, place)

    def load(self, register: int, place: int) -> None:
        self._move(0x8B, register, place)

    def note(self, value: int, place: int) -> None:
        self.code += b"\x48\xc7\x84\x24" + struct.pack("<ii", place, value)

    def compare(self, place: int, value: int) -> None:
        self.code += b"\x48\x81\xbc\x24" + struct.pack("<ii", place, value)

    def _move(self, opcode: int, register: int, place: int) -> None:
        prefix = 0x4C if register > 7 else 0x48
        self.code += bytes([prefix, opcode, 0x84 | (register & 7) << 3, 0x24]) + struct.pack("<i", place)


def write_doubled(of: Code, address: int, to: Path, one_in_four: bool) -> None:
    """Write a copy of a program that makes the call at an address twice: always, or at about one of four times.

    Raises NoRoom where that cannot be done.
    """
    moved = to_be_moved(of, address)
    to_function = Assembly(room(of))
    _to_the_function(to_function, of.functions[of.calls[address]], one_in_four)
    behind = Assembly(to_function.end)
    _behind_the_call(behind, address, moved)
    at_call = Assembly(address)
    at_call.jump(CALL, to_function.start)
    at_call.jump(JUMP, behind.start)
    at_call.code += b"\x90" * (moved[-1].end - at_call.end)
    assert of.image.read(address, 1) == CALL, "no call"
    if behind.end > of.end_of(of.program.unused):
        raise NoRoom(f"{of.program.unused} is too short")
    of.image.write_copy(to, [(part.start, part.code) for part in (to_function, behind, at_call)])


def _to_the_function(code: Assembly, function: int, one_in_four: bool) -> None:
    """Note the arguments, at the first of two calls. The stack pointer is 8 below what it is behind the call."""
    base = 8 - BELOW
    code.compare(base - STATE, SECOND)
    code.jump(EQUAL, function)
    if one_in_four:
        code.code += ONE_IN_FOUR
        code.jump(NOT_EQUAL, function)
    for register, place in zip(REGISTERS, ARGUMENTS, strict=True):
        code.store(register, base - place)
    code.note(FIRST, base - STATE)
    code.jump(JUMP, function)


def _behind_the_call(code: Assembly, address: int, moved: list[Instruction]) -> None:
    """After the first call make the second; after that, and where none was made, do what was moved."""
    last = Assembly(0)
    last.load(RAX, -BELOW - RESULT)
    for place in (STATE, RESULT, *ARGUMENTS):
        last.note(0, -BELOW - place)  # no pointer is left there for a search of the stack
    again = Assembly(0)
    again.store(RAX, -BELOW - RESULT)
    for register, place in zip(REGISTERS, ARGUMENTS, strict=True):
        again.load(register, -BELOW - place)
    again.note(SECOND, -BELOW - STATE)
    again.jump(JUMP, 0)  # of this length
    code.compare(-BELOW - STATE, FIRST)
    code.jump(NOT_EQUAL, code.end + len(NOT_EQUAL) + ADDRESS_BYTES + len(again.code))
    code.code += again.code[: -len(JUMP) - ADDRESS_BYTES]
    code.jump(JUMP, address)
    code.compare(-BELOW - STATE, SECOND)
    code.jump(NOT_EQUAL, code.end + len(NOT_EQUAL) + ADDRESS_BYTES + len(last.code))
    code.code += last.code
    for one in moved:
        move(code, one)
    code.jump(JUMP, moved[-1].end)


def to_be_moved(of: Code, address: int) -> list[Instruction]:
    """Return the instructions behind a call that make room for a jump; raise NoRoom where others need them there."""
    moved: list[Instruction] = []
    for one in of.following[address]:
        if moved and moved[-1].end - moved[0].address >= CALL_BYTES:
            break
        if moved and (one.address in of.targets or of.function(one.address) in of.switches):
            raise NoRoom(f"{one.address:#x} may be jumped to")
        if of.function(one.address) != of.function(address):
            break
        moved.append(one)
    if not moved or moved[-1].end - moved[0].address < CALL_BYTES:
        raise NoRoom(f"the function ends behind {address:#x}")
    if any(one.is_indirect_call or one.code[0] in range(0xE0, 0xE4) for one in moved):
        raise NoRoom(f"a call or loop behind {address:#x}")
    return moved


def move(code: Assembly, one: Instruction) -> None:
    """Append what does the same as an instruction that stood elsewhere."""
    first, second = one.code[0], one.code[1] if len(one.code) > 1 else 0
    if first == CALL[0]:
        code.call_as_if_at(one.end, one.relative(ADDRESS_BYTES))
    elif first in (0xE9, 0xEB):
        code.jump(JUMP, one.relative(ADDRESS_BYTES if first == 0xE9 else 1))
    elif first in range(0x70, 0x80):
        code.jump(bytes([0x0F, first + 0x10]), one.relative(1))
    elif first == 0x0F and second in range(0x80, 0x90):
        code.jump(one.code[:2], one.relative(ADDRESS_BYTES))
    elif one.refers_to is None:
        code.code += one.code
    else:
        place = one.code.index(struct.pack("<i", one.refers_to - one.end), 2)  # behind the opcode, before a constant
        moved = struct.pack("<i", one.refers_to - (code.end + len(one.code)))
        code.code += one.code[:place] + moved + one.code[place + ADDRESS_BYTES :]
