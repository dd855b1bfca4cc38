"""Indirect calls: by which instructions the address comes that one is for, and how certain that is.

The kernel side reads code backwards from a return address, where nothing tells the beginning of an instruction, and
says which ones it went by (bpf/indirect_calls.bpf.h). Here the function is decoded from its start: only if that gives
the same instructions, with nothing between that changes what they read, is it right which address the kernel found.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tracer.architecture.current import ARCHITECTURE
from tracer.architecture.instruction import Instruction, Memory
from tracer.model.frames import BY_REGISTER, BY_WORD

_MOST_BYTES, _MOST_LOADS = 32, 3
"""That the kernel side reads before a return address, and goes by."""
_LARGEST = 1 << 14
_ENDS = ("j", "call", "loop", "ret", "xbegin", "syscall", "int", "ud", "hlt")
"""What begins so is no straight line, or changes registers that calls need not preserve."""
_BESIDE = -2
"""In place of a register: the end of the instruction itself."""
_FRAME, _STACK = ARCHITECTURE.frame_pointer, ARCHITECTURE.stack_pointer


def path_of_call(code: bytes, start: int, back: int) -> str | None:
    """Return BY_REGISTER or BY_WORD, and where the instructions begin that a call gets its address by.

    That is a byte for each, from the return address back, the lowest the call's. `code`: of the function that begins at
    `start`; `back`: the return address. None of any other call, and where it is not certain.
    """
    near = _instructions_before(code, start, back)
    if not near or near[-1].name != "call" or not near[-1].operands or near[-1].operands[0].register is None:
        return None
    used = _instructions_used(near, near[-1].operands[0].register)
    if not used:
        return None
    path = reduce(lambda path, place: path << 8 | back - place.address, reversed(used), 0)
    if len(used) == 1:
        return f"{BY_REGISTER}{path:x}"
    flow = ARCHITECTURE.flow_of(code, start)
    if not flow.certain or any(used[-1].address < target < back for target in flow.targets):
        return None
    if len(used) == 2 and _is_own_slot(used[1], ARCHITECTURE.decode(code, start, len(code))):
        return f"{BY_REGISTER}{path:x}"
    return None if near[-1].operands[0].register == ARCHITECTURE.result_register else f"{BY_WORD}{path:x}"


def _instructions_before(code: bytes, start: int, back: int) -> Sequence[Instruction]:
    """Return the last instructions before an address; empty if none ends there."""
    if not start < back <= start + len(code) <= start + _LARGEST:
        return ()
    places = [line.address for line in ARCHITECTURE.lines_of(code[: back - start], start)]
    near = [address for address in places if back - address <= _MOST_BYTES]
    if not near:
        return ()
    found = ARCHITECTURE.decode(code[near[0] - start : back - start], near[0], len(near))
    return found if found and found[-1].end == back else ()


def _instructions_used(near: Sequence[Instruction], wanted: int) -> Sequence[Instruction]:
    """Return the call, which goes by a register, what loads that, and so on to what the call left as it was."""
    used, written = [near[-1]], set[int]()
    for instruction in reversed(near[:-1]):
        if _is_kept(wanted):
            break
        if instruction.name.startswith(_ENDS):
            return ()
        written |= instruction.written
        if wanted in instruction.written:
            base = _loaded_by(instruction, wanted)
            if base is None or len(used) > _MOST_LOADS or (_is_kept(base) and base in written):
                return ()
            used.append(instruction)
            wanted = base
    return used if _is_kept(wanted) else ()


def _is_kept(base: int) -> bool:
    """Tell whether what an address is relative to is where the call was made what it is where that led to."""
    return base == _BESIDE or base in ARCHITECTURE.preserved_registers


def _loaded_by(instruction: Instruction, register: int) -> int | None:
    """Return the base of the word that an instruction loads into a whole register; None for any other instruction."""
    if instruction.mnemonic != "mov" or len(instruction.operands) != 2:
        return None
    to, source = instruction.operands
    memory = source.memory
    if to.register != register or to.size != 8 or source.size != 8 or memory is None or not memory.plain:
        return None
    if memory.base is None and not ARCHITECTURE.is_same_anywhere(instruction):
        return _BESIDE
    return memory.base


def _is_own_slot(load: Instruction, function: Sequence[Instruction]) -> bool:
    """Tell whether a word is a variable of the function's own, which nobody else can write: it lies in its frame, below
    all whose address is taken."""
    slot = load.operands[1].memory
    if slot is None or slot.base != _FRAME or not any(map(_makes_frame, function)):
        return False
    return not any(_may_give_away(instruction, slot) for instruction in function)


def _makes_frame(instruction: Instruction) -> bool:
    return [operand.register for operand in instruction.operands] == [_FRAME, _STACK] and instruction.mnemonic == "mov"


def _may_give_away(instruction: Instruction, slot: Memory) -> bool:
    """Tell whether an instruction may make an address from which the slot is reached."""
    if instruction.mnemonic == "lea":
        memory = instruction.operands[1].memory
        if memory is None or not memory.plain:
            return True
        return memory.base == _STACK or (memory.base == _FRAME and memory.displacement <= slot.displacement)
    sources = {operand.register for operand in instruction.operands[1:]}
    return not _makes_frame(instruction) and bool(sources & {_FRAME, _STACK})
