"""The calls of gets and puts in a program, and copies of it in which one of them is left out.

A mutant differs from the program in the bytes of one call, so none is compiled: what runs is what the source without
that line would be compiled to, but for registers that nobody reads.
"""

from __future__ import annotations

import re
import struct
import subprocess
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from image import Image
from program import Program

CALL_BYTES = 5
_LINE = re.compile(r"\s+([0-9a-f]+):\s+(.*)")
_CALL = re.compile(r"call\s+[0-9a-f]+ <([^>]+)>")
_JUMP = re.compile(r"(?:\w+ )?j[a-z]+\s+(\*|[0-9a-f]+)")
_INDIRECT_CALL = re.compile(r"(?:\w+ )?call\s+\*")
_LEAVES = re.compile(r"(?:\w+ )?(?:j[a-z]+|call|ret)\b")
_REFERS = re.compile(r"\(%rip\).*# ([0-9a-f]+)")
_FUNCTION = re.compile(r"([0-9a-f]+) <([^>]+)>:")
_RETURN_0, _RETURN_1, _RETURN_OBJECT = b"\x31\xc0", b"\xb8\x01\x00\x00\x00", b"\x48\x89\xf8"
"""xor %eax, %eax; mov $1, %eax; mov %rdi, %rax"""
_CLEARS = re.compile(r"movq\s+\$0x0,-?(?:0x[0-9a-f]+)?\(%(?!rip|rsp|rbp)")
"""Of a put that also clears the slot, as perf's zput."""
_NOTHING = b"\x0f\x1f\x44\x00\x00", b"\x0f\x1f\x40\x00", b"\x0f\x1f\x00", b"\x66\x90", b"\x90", b""
"""What does nothing, of 5 bytes, 4, and so on."""


@dataclass(frozen=True)
class Instruction:
    address: int
    code: bytes
    text: str = ""

    @property
    def end(self) -> int:
        return self.address + len(self.code)

    @property
    def is_indirect_call(self) -> bool:
        return _INDIRECT_CALL.match(self.text) is not None

    @property
    def refers_to(self) -> int | None:
        """The address that it names relative to itself."""
        found = _REFERS.search(self.text)
        return int(found[1], 16) if found else None

    def relative(self, size: int) -> int:
        """Return the address that its last `size` bytes name relative to its end."""
        return self.end + int.from_bytes(self.code[-size:], "little", signed=True)


@dataclass(frozen=True)
class Code:
    program: Program
    image: Image
    calls: Mapping[int, str]
    """Link address of each call of a get or a put, and the function that it calls."""
    functions: Mapping[str, int]
    following: Mapping[int, Sequence[Instruction]]
    """The next instructions behind each of these calls."""
    preceding: Mapping[int, Sequence[Instruction]]
    """The instructions before each of these calls, from the last call or jump on."""
    targets: frozenset[int]
    """Addresses that are jumped to."""
    switches: frozenset[str]
    """Functions that jump to computed addresses."""

    def function(self, address: int) -> str:
        """Return the name of the function that an address is in."""
        return self._in_order[bisect_right(self._in_order, (address, "\x7f")) - 1][1]

    def end_of(self, function: str) -> int:
        """Return where the next function begins."""
        return self._in_order[bisect_right(self._in_order, (self.functions[function], "\x7f"))][0]

    def calls_of(self, names: Mapping[str, str], stub: str | None) -> set[int]:
        """Return the calls of these functions that mutants may change."""
        called = {address for address, callee in self.calls.items() if callee in names or callee == stub}
        return {address for address in called if self.program.changes(address, self.functions)}

    @cached_property
    def _in_order(self) -> list[tuple[int, str]]:
        return sorted((start, name) for name, start in self.functions.items())


def read_code(program: Program) -> Code:
    """Disassemble a program, which takes some seconds."""
    command = ["objdump", "-d", "--no-show-raw-insn", str(program.binary)]
    text = subprocess.run(command, check=True, capture_output=True, text=True, env={"LC_ALL": "C"}).stdout
    wanted = {*program.puts, *program.gets, program.put_stub, program.get_stub}
    lines: list[tuple[int, str]] = []
    functions: dict[str, int] = {}
    calls: dict[int, str] = {}
    places: dict[int, int] = {}
    targets, switches, function = set[int](), set[str](), ""
    for line in text.splitlines():
        if found := _LINE.match(line):
            address, said = int(found[1], 16), found[2]
            if (call := _CALL.match(said)) and call[1] in wanted:
                calls[address], places[address] = call[1], len(lines)
            elif jump := _JUMP.match(said):
                targets |= {int(jump[1], 16)} if jump[1] != "*" else set()
                switches |= {function} if jump[1] == "*" else set()
            lines.append((address, said))
        elif found := _FUNCTION.match(line):
            function = found[2]
            functions[function] = int(found[1], 16)
    image = Image(program.binary)
    following = {
        address: _instructions(image, lines[place + 1 : place + 2 + CALL_BYTES]) for address, place in places.items()
    }
    preceding = {address: _instructions(image, _before(lines, place)) for address, place in places.items()}
    return Code(program, image, calls, functions, following, preceding, frozenset(targets), frozenset(switches))


def _before(lines: Sequence[tuple[int, str]], place: int) -> Sequence[tuple[int, str]]:
    """Return what stands before a call from the last call or jump on, and the call."""
    start = place - 1
    while start > 0 and not _LEAVES.match(lines[start][1]):
        start -= 1
    return lines[start : place + 1]


def _instructions(image: Image, lines: Sequence[tuple[int, str]]) -> list[Instruction]:
    """Return all but the last, which says how long the one before it is."""
    return [Instruction(start, image.read(start, end - start), text) for (start, text), (end, _) in pairwise(lines)]


def write_mutant(of: Code, address: int, to: Path, one_in_four: bool) -> None:
    """Write a copy of a program that leaves out the call at an address: always, or at about one of four times.

    What the program goes on with is what the call would have returned: the object of a get, 1 of its stub, that it
    was not the last reference of a put's stub."""
    assert of.image.read(address, 1) == b"\xe8", "no call"
    callee = of.calls[address]
    instead = _RETURN_OBJECT if callee in of.program.gets else _RETURN_1 if callee == of.program.get_stub else _RETURN_0
    if not one_in_four:
        cleared = [(one.address, b"\x90" * len(one.code)) for one in _cleared_by(of, address)]
        of.image.write_copy(to, [(address, instead + _NOTHING[len(instead)]), *cleared])
        return
    start = room(of)
    # rdtsc; shr $6, %eax; test $3, %al; jne 1f; what is done instead; ret; 1: jmp callee
    chance = b"\x0f\x31\xc1\xe8\x06\xa8\x03\x75" + bytes([len(instead) + 1]) + instead + b"\xc3\xe9"
    chance += struct.pack("<i", of.functions[callee] - (start + len(chance) + 4))
    of.image.write_copy(to, [(start, chance), (address + 1, struct.pack("<i", start - (address + CALL_BYTES)))])


def _cleared_by(of: Code, address: int) -> list[Instruction]:
    """Return what clears the slot right behind a put, as in perf's zput: who forgets it has neither."""
    puts = of.calls[address] in of.program.puts
    return [one for one in of.following[address][:2] if puts and _CLEARS.match(one.text)][:1]


def room(of: Code) -> int:
    """Return the link address of code that does not run."""
    return (of.functions[of.program.unused] + 63) // 16 * 16
