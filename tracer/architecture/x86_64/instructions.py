"""Decoded x86-64 instructions, in our own terms: registers by DWARF number, direct branch targets."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from tracer.architecture.early_library import load_early, read_ahead
from tracer.architecture.instruction import FLAGS, Flow, Instruction, Line, Memory, Operand
from tracer.architecture.x86_64.registers import Register
from tracer.late_patterns import late_pattern

_LEGACY = {
    Register.RAX: ("rax", "eax", "ax", "al", "ah"), Register.RBX: ("rbx", "ebx", "bx", "bl", "bh"),
    Register.RCX: ("rcx", "ecx", "cx", "cl", "ch"), Register.RDX: ("rdx", "edx", "dx", "dl", "dh"),
    Register.RSI: ("rsi", "esi", "si", "sil"), Register.RDI: ("rdi", "edi", "di", "dil"),
    Register.RBP: ("rbp", "ebp", "bp", "bpl"), Register.RSP: ("rsp", "esp", "sp", "spl"),
}  # fmt: skip
_NUMBERS = {name: int(number) for number, names in _LEGACY.items() for name in names}
_NUMBERS |= {f"r{n}{suffix}": n for n in range(8, 16) for suffix in ("", "d", "w", "b")}
_LIBRARIES = ("libcapstone.so", "libcapstone.so.5", "libcapstone.so.4")
"""As capstone's package names its own, and the system's."""
_HIGH_BYTES = frozenset(("ah", "bh", "ch", "dh"))
_TABLE = late_pattern(r"\[rip ([+-]) (0x[0-9a-f]+|\d+)\]")


def pointer_register(name: str) -> int | None:
    """Return the DWARF number of a 64-bit register."""
    return _NUMBERS.get(name) if name.startswith("r") and not name.endswith(("d", "w", "b")) else None


def written_register(name: str) -> int | None:
    """Return the DWARF number of a register, or of that which it is a part of."""
    return _NUMBERS.get(name)


def prepare_to_decode() -> None:
    """Have the kernel read capstone's library, of 10 MB: while processes are held that may take seconds."""
    read_ahead("capstone", _LIBRARIES)


def lines_of(code: bytes, address: int) -> Iterator[Line]:
    """Yield the instructions of a function; ends before its end where bytes do not decode."""
    for start, size, mnemonic, operands in _decoder().disasm_lite(code, address):
        name = mnemonic.rsplit(" ", 1)[-1]
        direct = name.startswith(("j", "loop", "call", "xbegin")) and operands.startswith("0x")
        target = int(operands, 16) if direct else None
        is_padding = name == "nop" or (name == "xchg" and operands == "ax, ax")
        yield Line(start, start + size, name, operands, target, is_padding)


def address_of(line: Line) -> int | None:
    """Return the address beside the code that a `lea` takes; None for any other instruction."""
    return place_beside_code(line) if line.name == "lea" else None


def slot_of(line: Line) -> int | None:
    """Return the address beside the code where an indirect jump reads where to go; None for any other instruction."""
    return place_beside_code(line) if line.is_indirect_jump else None


def place_beside_code(line: Line) -> int | None:
    """Return the address that an operand takes relative to the code, if one does."""
    match = _TABLE.search(line.operands)
    if match is None:
        return None
    distance = int(match[2], 0)
    return line.end + (distance if match[1] == "+" else -distance)


def is_same_anywhere(instruction: Instruction) -> bool:
    """Tell whether an instruction's bytes do not depend on where it stands."""
    is_branch = instruction.name.startswith(("j", "loop", "call", "xbegin"))
    return not is_branch and "rip" not in instruction.text


def decode(code: bytes, address: int, count: int) -> list[Instruction]:
    """Return up to `count` instructions; fewer where the bytes end or make no sense."""
    return [_convert(raw) for raw in _decoder().disasm(code, address, count)]


def flow_of(code: bytes, address: int) -> Flow:
    """Return the branch targets of a whole function.

    Not certain: a jump through a table, a conditional jump out of the function (into its cold part,
    which may come back), or bytes that do not decode.
    """
    end, reached, certain = address + len(code), address, True
    targets = set()
    for start, size, mnemonic, operands in _decoder().disasm_lite(code, address):
        reached = start + size
        name = mnemonic.rsplit(" ", 1)[-1]
        if not name.startswith(("j", "loop", "call", "xbegin")):
            continue
        if not operands.startswith("0x"):
            certain = certain and name == "call"
            continue
        target = int(operands, 16)
        if not (name == "call" and target == address):
            targets.add(target)
        if name not in ("call", "jmp") and not address <= target < end:
            certain = False
    return Flow(frozenset(targets), certain and reached == end)


@contextmanager
def _without_setuptools() -> Iterator[None]:
    """Have the standard library's distutils found where there is one.

    setuptools puts a finder of its own before it (_distutils_hack), which imports all of setuptools: 0.1 s, for one
    folder's name that capstone asks distutils for.
    """
    finders = list(sys.meta_path)
    sys.meta_path[:] = [finder for finder in finders if type(finder).__module__ != "_distutils_hack"]
    try:
        yield
    finally:
        sys.meta_path[:] = finders


@cache
def _capstone() -> ModuleType:
    """Import capstone when the first instruction is decoded."""
    load_early("capstone", _LIBRARIES)
    try:
        with _without_setuptools():
            return import_module("capstone")
    except ModuleNotFoundError:  # Python 3.12 has no distutils any more, but setuptools does
        return import_module("capstone")


@cache
def _decoder() -> Any:
    capstone = _capstone()
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.detail = True
    return decoder


def _convert(raw: Any) -> Instruction:
    _, written = raw.regs_access()
    names = {raw.reg_name(register) for register in written}
    return Instruction(
        raw.address,
        bytes(raw.bytes),
        raw.mnemonic,
        f"{raw.mnemonic} {raw.op_str}".strip(),
        tuple(_operand(raw, operand) for operand in raw.operands),
        frozenset({_NUMBERS[n] for n in names if n in _NUMBERS} | ({FLAGS} if "rflags" in names else set())),
    )


def _operand(raw: Any, operand: Any) -> Operand:
    if operand.type == _capstone().x86.X86_OP_REG:
        name = raw.reg_name(operand.reg)
        return Operand(1 if name in _HIGH_BYTES else operand.size, register=_NUMBERS.get(name))
    if operand.type == _capstone().x86.X86_OP_MEM:
        base = _NUMBERS.get(raw.reg_name(operand.mem.base) or "") if operand.mem.base else None
        plain = not operand.mem.index and not operand.mem.segment
        return Operand(operand.size, memory=Memory(base, operand.mem.disp, plain))
    return Operand(operand.size, immediate=operand.imm)
