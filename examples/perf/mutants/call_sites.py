"""The calls of puts in perf, and copies of perf in which one of them is left out.

A mutant differs from perf in the five bytes of one call, so none is compiled: what runs is what the source without that
line would be compiled to, but for registers that nobody reads.
"""

from __future__ import annotations

import re
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

KINDS = {
    "map__put": "map", "dso__put": "dso", "thread__put": "thread", "maps__put": "maps", "nsinfo__put": "nsi",
    "mem_info__put": "mi", "perf_cpu_map__put": "cpus", "perf_thread_map__put": "threads", "cgroup__put": "cgrp",
    "comm_str__put": "cs", "cpu_aggr_map__put": "cpus",
}  # fmt: skip
"""What each put gives back: a family of tracer's type names, as slots.py calls them."""
STUB = "__refcnt__put"
_CALL = re.compile(r"\s+([0-9a-f]+):\s+call\s+[0-9a-f]+ <([^>]+)>")
_FUNCTION = re.compile(r"([0-9a-f]+) <([^>]+)>:")
_NOTHING, _RETURN_0 = b"\x0f\x1f\x44\x00\x00", b"\x31\xc0\x0f\x1f\x00"
_UNUSED = "cmd_c2c"
"""A function that no workload runs: room for what leaves out one call in four."""


@dataclass(frozen=True)
class Perf:
    path: Path
    calls: dict[int, str]
    """Link address of each call of a put, and the function that it calls."""
    functions: dict[str, int]

    def function(self, address: int) -> str:
        """Return the name of the function that an address is in."""
        return max((start, name) for name, start in self.functions.items() if start <= address)[1]


def read_perf(path: Path) -> Perf:
    """Disassemble perf, which takes a second."""
    command = ["objdump", "-d", "--no-show-raw-insn", str(path)]
    text = subprocess.run(command, check=True, capture_output=True, text=True, env={"LC_ALL": "C"}).stdout
    calls = {int(call[1], 16): call[2] for call in map(_CALL.match, text.splitlines()) if call}
    functions = {found[2]: int(found[1], 16) for found in map(_FUNCTION.match, text.splitlines()) if found}
    wanted = {*KINDS, STUB}
    return Perf(path, {address: callee for address, callee in calls.items() if callee in wanted}, functions)


def write_mutant(perf: Perf, address: int, to: Path, one_in_four: bool) -> None:
    """Write a copy of perf that leaves out the call at an address: always, or at about one of four times."""
    code = bytearray(perf.path.read_bytes())
    place = _file_offset(perf.path, address)
    assert code[place] == 0xE8, "no call"
    callee = perf.calls[address]
    if one_in_four:
        room = (perf.functions[_UNUSED] + 63) // 16 * 16
        # rdtsc; shr $6, %eax; test $3, %al; jne 1f; xor %eax, %eax; ret; 1: jmp callee
        chance = b"\x0f\x31\xc1\xe8\x06\xa8\x03\x75\x03\x31\xc0\xc3\xe9"
        chance += struct.pack("<i", perf.functions[callee] - (room + len(chance) + 4))
        start = _file_offset(perf.path, room)
        code[start : start + len(chance)] = chance
        code[place + 1 : place + 5] = struct.pack("<i", room - (address + 5))
    else:
        code[place : place + 5] = _RETURN_0 if callee == STUB else _NOTHING
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
