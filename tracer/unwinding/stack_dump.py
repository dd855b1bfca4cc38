"""A stack as the kernel side dumped it: registers, memory, and what return probes have hidden."""

from __future__ import annotations

import numpy as np

from tracer.architecture.current import ARCHITECTURE
from tracer.late_dataclasses import dataclass
from tracer.model import records
from tracer.model.records import STACK_REACH

WORD_BYTES = 8
_PAGE_BYTES = WORD_BYTES * records.PAGE_WORDS


class Unreadable(Exception):
    """What was asked for is not in the dump."""


@dataclass(frozen=True)
class StackDump:
    """A record of the dump ring; see `struct stack_dump` of bpf/abi.h."""

    id: int
    cut: int
    space: tuple[int, int]
    start: int
    ip: int
    registers: dict[int, int]
    """The preserved ones, by DWARF number."""
    pending: dict[int, int]
    """By address of its slot: the return address that a return probe has replaced."""
    base: int
    memory: bytes
    """From address `base` on."""
    code: tuple[tuple[int, int], ...]
    """Ranges that all code was in that the kernel side knew."""

    @classmethod
    def read(cls, blob: bytes) -> StackDump:
        """Read a record."""
        row = np.frombuffer(blob, records.STACK_DUMP, 1)[0]
        registers = {int(number): int(row["registers"][number]) for number in ARCHITECTURE.preserved_registers}
        words = row["words"][: min(int(row["pages"]), records.DUMP_PAGES) * records.PAGE_WORDS]
        pending: dict[int, int] = {}
        for slot, address in row["pending"].tolist():
            if slot:
                pending.setdefault(slot, address)  # the newest: of probes that share a slot it has the true address
        return cls(
            int(row["id"]), int(row["cut"]), (int(row["pid"]), int(row["generation"])), int(row["start"]),
            int(row["ip"]), registers, pending, registers[ARCHITECTURE.stack_pointer] & -_PAGE_BYTES, words.tobytes(),
            tuple(row["code"].tolist()),
        )  # fmt: skip

    def word(self, address: int) -> int:
        """Return the word at an address; raises Unreadable."""
        at = address - self.base
        if at < 0 or at + WORD_BYTES > len(self.memory) or address < self.registers[ARCHITECTURE.stack_pointer]:
            raise Unreadable
        return int.from_bytes(self.memory[at : at + WORD_BYTES], "little")

    def tells(self, word: int) -> bool:
        """Whether the stack's id depends on a word of the dump (`mixed_if_decisive` of bpf/stack_dump.bpf.c)."""
        sp = self.registers[ARCHITECTURE.stack_pointer]
        return sp <= word < sp + STACK_REACH or any(start <= word < end for start, end in self.code)
