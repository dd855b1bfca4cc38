"""Moved puts: copies of a program in which one put is made before the last use of its object, the call before it.

As where a call is made twice (`doubled.py`), the call of the use goes through a detour, and a jump that stands behind
it leads to another. The first makes the put, which returns to behind the use; the second makes the use, and then goes
on behind the put. So the put has the stack that it would have in a source with both lines exchanged, without a frame of
the detours. What the put is given is computed as ever, by those instructions between both calls that it depends on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from call_sites import CALL_BYTES, Code, Instruction, room
from doubled import (
    ADDRESS_BYTES,
    ARGUMENTS,
    BELOW,
    CALL,
    EQUAL,
    FIRST,
    JUMP,
    NOT_EQUAL,
    ONE_IN_FOUR,
    RAX,
    REGISTERS,
    RESULT,
    SECOND,
    STATE,
    Assembly,
    NoRoom,
    move,
)

_OBJECT = "di"
_KEPT = {"bx", "bp", "12", "13", "14", "15"}
"""Registers that a call leaves as they are, without the letters that say how much of them is meant."""
_REGISTER = re.compile(r"%[re]?([a-z]{2}|\d+)[dwbl]?\b")
_COPY = re.compile(r"(?:mov|lea|movslq|movz\w+)\s+(?P<source>.*),(?P<to>%\w+)(?:\s|$)")
_WRITES = re.compile(r"(?!cmp|test|nop)\w+\s+(?:.*,)?[^,]*\)$")
"""What changes memory: its last operand is some."""


def use_before(of: Code, address: int) -> Instruction:
    """Return the call that a put is moved before; raise NoRoom where that cannot be done."""
    use, between = _parts(of, address)
    _needed(between)
    return use


def write_moved(of: Code, address: int, to: Path, one_in_four: bool) -> None:
    """Write a copy of a program that makes the put at an address before the call that stands before it: always, or at
    about one of four times.

    Raises NoRoom where that cannot be done.
    """
    use, between = _parts(of, address)
    put, behind_put = of.functions[of.calls[address]], address + CALL_BYTES
    at_use = Assembly(room(of))
    _put_first(at_use, use.relative(ADDRESS_BYTES), put, _needed(between), one_in_four)
    behind = Assembly(at_use.end)
    _use_then(behind, use.address, between, put, behind_put)
    if behind.end > of.end_of(of.program.unused):
        raise NoRoom(f"{of.program.unused} is too short")
    changed = Assembly(use.address)
    changed.jump(CALL, at_use.start)
    changed.jump(JUMP, behind.start)
    changed.code += b"\x90" * (behind_put - changed.end)
    of.image.write_copy(to, [(part.start, part.code) for part in (at_use, behind, changed)])


def _put_first(code: Assembly, use: int, put: int, needed: Sequence[Instruction], one_in_four: bool) -> None:
    """Note the arguments of the use and make the put. The stack pointer is 8 below what it is behind the call."""
    base = 8 - BELOW
    code.compare(base - STATE, SECOND)
    code.jump(EQUAL, use)
    if one_in_four:
        code.code += ONE_IN_FOUR
        code.jump(NOT_EQUAL, use)
    for register, place in ((RAX, RESULT), *zip(REGISTERS, ARGUMENTS, strict=True)):
        code.store(register, base - place)
    code.note(FIRST, base - STATE)
    for one in needed:
        move(code, one)
    code.jump(JUMP, put)


def _use_then(code: Assembly, use: int, between: Sequence[Instruction], put: int, behind_put: int) -> None:
    """After the put make the use; after that go on behind the put; where it was not made before, make it."""
    again, after = Assembly(0), Assembly(0)
    for register, place in ((RAX, RESULT), *zip(REGISTERS, ARGUMENTS, strict=True)):
        again.load(register, -BELOW - place)
    again.note(SECOND, -BELOW - STATE)
    for place in (STATE, RESULT, *ARGUMENTS):
        after.note(0, -BELOW - place)  # no pointer is left there for a search of the stack
    code.compare(-BELOW - STATE, FIRST)
    _jump_over(code, len(again.code))
    code.code += again.code
    code.jump(JUMP, use)
    code.compare(-BELOW - STATE, SECOND)
    moved = Assembly(code.end + len(NOT_EQUAL) + ADDRESS_BYTES + len(after.code))
    for one in between:
        move(moved, one)
    _jump_over(code, len(after.code) + len(moved.code))
    code.code += after.code + moved.code
    code.jump(JUMP, behind_put)
    for one in between:
        move(code, one)
    code.call_as_if_at(behind_put, put)


def _jump_over(code: Assembly, size: int) -> None:
    """Jump, if not equal, over so many bytes and the jump behind them."""
    code.jump(NOT_EQUAL, code.end + len(NOT_EQUAL) + 2 * ADDRESS_BYTES + len(JUMP) + size)


def _parts(of: Code, address: int) -> tuple[Instruction, list[Instruction]]:
    """Return the call before a put, and what stands between both."""
    if of.calls[address] not in of.program.puts:
        raise NoRoom(f"the put at {address:#x} is inlined")
    first, *between = of.preceding[address]
    function = of.function(address)
    if first.code[:1] != CALL or of.function(first.address) != function:
        raise NoRoom(f"no call stands before {address:#x}")
    if function in of.switches or of.targets & {address, *(one.address for one in between[1:])}:
        raise NoRoom(f"what is before {address:#x} may be jumped to")
    return first, between


def _needed(between: Sequence[Instruction]) -> list[Instruction]:
    """Return the instructions that compute what the put is given, from what a call leaves as it is."""
    wanted, needed = {_OBJECT}, list[Instruction]()
    for one in reversed(between):
        copy = _COPY.match(one.text)
        registers = _REGISTER.findall(one.text)
        if copy and _REGISTER.findall(copy["to"])[0] in wanted:
            wanted -= set(_REGISTER.findall(copy["to"]))
            wanted |= set(_REGISTER.findall(copy["source"]))
            needed.insert(0, one)
        elif registers and registers[-1] in wanted and not one.text.rstrip().endswith(")"):
            raise NoRoom(f"what is put is computed at {one.address:#x}")
    if not wanted <= _KEPT:
        raise NoRoom("what is put may be what the call before returned")
    stored = any(_WRITES.match(one.text.split("#")[0].rstrip()) for one in between)
    if stored and any("(" in one.text for one in needed):
        raise NoRoom("what is put may be stored before")
    return needed
