"""Values followed by the placer, against a small machine that runs the same instructions."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.architecture.current import argument
from tracer.architecture.x86_64.instructions import decode
from tracer.architecture.x86_64.registers import Register
from tracer.model.operations import Location, LocationKind
from tracer.sites.values import Values

ENCODED = {  # the processor's numbers of the registers that the programs use
    Register.RAX: 0, Register.RCX: 1, Register.RDX: 2, Register.RBX: 3, Register.RSI: 6, Register.RDI: 7,
    Register.R8: 8, Register.R12: 12,
}  # fmt: skip
STACK_TOP = 0x7000
NEEDED = (argument(0), argument(1, width=4), argument(3), argument(6), argument(7, width=4))


@dataclass
class Machine:
    """Eight registers, a stack and the instructions below; every method returns the encoding too."""

    registers: dict[Register, int] = field(
        default_factory=lambda: {r: 0x1111_1111_1111_1111 * (n % 15 + 1) + n for r, n in ENCODED.items()}
    )
    memory: dict[int, int] = field(default_factory=lambda: {STACK_TOP + n: (7 * n + 3) & 255 for n in range(64)})
    rsp: int = STACK_TOP

    def load(self, address: int, size: int) -> int:
        return int.from_bytes(bytes(self.memory.get(address + n, 0xEE) for n in range(size)), "little")

    def store(self, address: int, size: int, value: int) -> None:
        for n in range(size):
            self.memory[address + n] = value >> 8 * n & 255

    def move(self, to: Register, source: Register, size: int) -> bytes:
        self.registers[to] = self.registers[source] & (1 << 8 * size) - 1
        return _prefix(size, source, to) + bytes((0x89, 0xC0 | (ENCODED[source] & 7) << 3 | ENCODED[to] & 7))

    def clear(self, to: Register, _: Register, __: int) -> bytes:
        self.registers[to] = 0
        return _prefix(4, to, to) + bytes((0x31, 0xC0 | (ENCODED[to] & 7) * 9))

    def push(self, source: Register, _: Register, __: int) -> bytes:
        self.rsp -= 8
        self.store(self.rsp, 8, self.registers[source])
        return (b"\x41" if ENCODED[source] > 7 else b"") + bytes((0x50 | ENCODED[source] & 7,))

    def pop(self, to: Register, _: Register, __: int) -> bytes:
        self.registers[to] = self.load(self.rsp, 8)
        self.rsp += 8
        return (b"\x41" if ENCODED[to] > 7 else b"") + bytes((0x58 | ENCODED[to] & 7,))

    def lower(self, _: Register, __: Register, size: int) -> bytes:
        self.rsp -= 4 * size
        return bytes((0x48, 0x83, 0xEC, 4 * size))

    def raise_(self, _: Register, __: Register, size: int) -> bytes:
        self.rsp += 2 * size
        return bytes((0x48, 0x83, 0xC4, 2 * size))

    def save(self, source: Register, at: Register, size: int) -> bytes:
        offset = _offset(at)
        self.store(self.rsp + offset, size, self.registers[source])
        return _prefix(size, source) + bytes((0x89, 0x44 | (ENCODED[source] & 7) << 3, 0x24)) + struct.pack("b", offset)

    def restore(self, to: Register, at: Register, size: int) -> bytes:
        offset = _offset(at)
        self.registers[to] = self.load(self.rsp + offset, size)
        return _prefix(size, to) + bytes((0x8B, 0x44 | (ENCODED[to] & 7) << 3, 0x24)) + struct.pack("b", offset)

    def value(self, location: Location) -> int:
        if location.kind == LocationKind.REGISTER:
            whole = self.registers[Register(location.register)]
        else:
            whole = self.load(self.rsp + location.offset, 8)
        return whole & (1 << 8 * location.width) - 1


def _prefix(size: int, field_register: Register, other: Register = Register.RAX) -> bytes:
    bits = (size == 8) << 3 | (ENCODED[field_register] > 7) << 2 | (ENCODED[other] > 7)
    return bytes((0x40 | bits,)) if bits else b""


def _offset(register: Register) -> int:
    """Spread the registers over slots above and below rsp, some of them half overlapping."""
    return 4 * (ENCODED[register] % 9) - 8


STEPS = st.tuples(
    st.sampled_from(("move", "move", "save", "save", "restore", "push", "pop", "lower", "raise_", "clear")),
    st.sampled_from(list(ENCODED)),
    st.sampled_from(list(ENCODED)),
    st.sampled_from((4, 8)),
)


@settings(max_examples=600, deadline=None)
@given(st.lists(STEPS, max_size=14))
def test_values_are_where_the_machine_has_them(steps: list[tuple[str, Register, Register, int]]) -> None:
    machine, values = Machine(), Values(NEEDED)
    wanted = [machine.value(location) for location in NEEDED]
    for name, first, second, size in steps:
        encoded = getattr(machine, name)(first, second, size)
        (instruction,) = decode(encoded, 0x1000, 1)
        assert len(instruction.raw) == len(encoded)
        if values.follow(instruction) or values.lost:
            return
        assert machine.rsp + values.depth == STACK_TOP
        assert [machine.value(values.locate(location)) for location in NEEDED] == wanted


def test_the_machine_and_the_placer_agree_on_a_long_program() -> None:
    """Guard the test above against giving up early: everything moves and nothing is lost."""
    machine, values = Machine(), Values((argument(0), argument(3)))
    di, cx, bx, ax = Register.RDI, Register.RCX, Register.RBX, Register.RAX
    for step in (
        ("lower", ax, ax, 8), ("save", di, Register.RSI, 8), ("clear", di, di, 4), ("move", bx, cx, 8),
        ("clear", cx, cx, 4), ("push", bx, ax, 8), ("clear", bx, bx, 4), ("pop", Register.R12, ax, 8),
    ):  # fmt: skip
        (instruction,) = decode(getattr(machine, step[0])(*step[1:]), 0x1000, 1)
        assert values.follow(instruction) == ""
    assert values.lost == ""
    assert values.locate(argument(0)) == Location(LocationKind.STACK, offset=16)
    assert values.locate(argument(3)) == Location(LocationKind.REGISTER, Register.R12)
    assert machine.value(values.locate(argument(0))) == Machine().registers[di]
