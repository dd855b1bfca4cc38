"""The calls of puts in a program, and copies of it in which one of them is left out.

A mutant differs from the program in the five bytes of one call, so none is compiled: what runs is what the source
without that line would be compiled to, but for registers that nobody reads.
"""

from __future__ import annotations

import re
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from program import Program

_CALL = re.compile(r"\s+([0-9a-f]+):\s+call\s+[0-9a-f]+ <([^>]+)>")
_FUNCTION = re.compile(r"([0-9a-f]+) <([^>]+)>:")
_NOTHING, _RETURN_0 = b"\x0f\x1f\x44\x00\x00", b"\x31\xc0\x0f\x1f\x00"


@dataclass(frozen=True)
class Code:
    program: Program
    calls: dict[int, str]
    """Link address of each call of a put, and the function that it calls."""
    functions: dict[str, int]

    def function(self, address: int) -> str:
        """Return the name of the function that an address is in."""
        return max((start, name) for name, start in self.functions.items() if start <= address)[1]


def read_code(program: Program) -> Code:
    """Disassemble a program, which takes a second."""
    command = ["objdump", "-d", "--no-show-raw-insn", str(program.binary)]
    text = subprocess.run(command, check=True, capture_output=True, text=True, env={"LC_ALL": "C"}).stdout
    calls = {int(call[1], 16): call[2] for call in map(_CALL.match, text.splitlines()) if call}
    functions = {found[2]: int(found[1], 16) for found in map(_FUNCTION.match, text.splitlines()) if found}
    wanted = {*program.puts, program.stub}
    return Code(program, {address: callee for address, callee in calls.items() if callee in wanted}, functions)


def write_mutant(of: Code, address: int, to: Path, one_in_four: bool) -> None:
    """Write a copy of a program that leaves out the call at an address: always, or at about one of four times."""
    code = bytearray(of.program.binary.read_bytes())
    place = _file_offset(of.program.binary, address)
    assert code[place] == 0xE8, "no call"
    callee = of.calls[address]
    if one_in_four:
        room = (of.functions[of.program.unused] + 63) // 16 * 16
        # rdtsc; shr $6, %eax; test $3, %al; jne 1f; xor %eax, %eax; ret; 1: jmp callee
        chance = b"\x0f\x31\xc1\xe8\x06\xa8\x03\x75\x03\x31\xc0\xc3\xe9"
        chance += struct.pack("<i", of.functions[callee] - (room + len(chance) + 4))
        start = _file_offset(of.program.binary, room)
        code[start : start + len(chance)] = chance
        code[place + 1 : place + 5] = struct.pack("<i", room - (address + 5))
    else:
        code[place : place + 5] = _RETURN_0 if callee == of.program.stub else _NOTHING
    to.unlink(missing_ok=True)
    to.write_bytes(code)
    to.chmod(0o755)


def _file_offset(path: Path, address: int) -> int:
    text = subprocess.run(["readelf", "-lW", str(path)], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        fields = line.split()
        if fields[:1] == ["LOAD"]:
            offset, start, size = (int(fields[n], 16) for n in (1, 2, 4))
            if start <= address < start + size:
                return address - start + offset
    raise ValueError(f"{address:#x} is not in {path}")
