"""What the instructions of an inlined copy do to memory, and where it begins so that each execution is seen once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tracer.elf.image import Image
from tracer.elf.inlined_copies import InlinedCopy
from tracer.model.operations import Register
from tracer.sites.flow_graph import FlowGraph
from tracer.sites.instructions import Instruction, decode

_READ_ONLY = frozenset(
    ("test", "cmp", "bt", "nop", "push", "jmp", "mul", "imul", "div", "idiv", "ucomiss", "ucomisd", "comiss", "comisd",
     "prefetcht0", "prefetcht1", "prefetcht2", "prefetchnta", "prefetchw", "endbr64", "call")
)  # fmt: skip
_BY_AMOUNT = ("add", "sub")
_LONGEST_COPY = 4096


@dataclass(frozen=True)
class CopyCode:
    """The instructions of a copy, by address."""

    instructions: dict[int, Instruction]

    def effects(self) -> frozenset[int]:
        """Return what writes memory or calls; the stack counts only where nothing else is written."""
        calls = {a for a, i in self.instructions.items() if i.name == "call"}
        stores = {a for a, i in self.instructions.items() if writes_memory(i)}
        elsewhere = {a for a in stores if not _is_on_stack(self.instructions[a])}
        return frozenset(calls | elsewhere or stores)

    def counts_more_than_one(self, displacement: int | None) -> bool:
        """Tell whether it adds anything but one to memory (at `displacement` from a register, if that is known)."""
        for instruction in self.instructions.values():
            operands = instruction.operands
            if instruction.name not in _BY_AMOUNT or len(operands) != 2 or operands[0].memory is None:
                continue
            if displacement is not None and operands[0].memory.displacement != displacement:
                continue
            if operands[1].immediate not in (1, -1) and _low(operands[1].immediate) != 0xFFFFFFFF:
                return True
        return False


def _low(immediate: int | None) -> int | None:
    return None if immediate is None else immediate & 0xFFFFFFFF


def code_of(image: Image, copy: InlinedCopy) -> CopyCode:
    """Return the decoded copy; what does not decode is missing."""
    found = {}
    for start, end in copy.ranges:
        offset = image.file_offset_of(start)
        if offset is not None:
            code = bytes(image.data[offset : offset + end - start])
            found.update({instruction.address: instruction for instruction in decode(code, start, _LONGEST_COPY)})
    return CopyCode(found)


def writes_memory(instruction: Instruction) -> bool:
    operands = instruction.operands
    if instruction.name in _READ_ONLY or not operands:
        return False
    return operands[0].memory is not None or (instruction.name in ("xchg", "xadd") and operands[-1].memory is not None)


def _is_on_stack(instruction: Instruction) -> bool:
    memory = next((operand.memory for operand in instruction.operands if operand.memory), None)
    return memory is not None and memory.base in (Register.RSP, Register.RBP)


def why_not_entry(entry: int, copy: InlinedCopy, graph: FlowGraph, effects: Collection[int]) -> str:
    """Return why passing `entry` is not the same as executing the copy once; nothing where it is.

    It is where every way to an effect of the copy leads through it, once, and where no condition but the copy's own
    lies between.
    """
    if entry not in graph.lines:
        return "it begins inside of an instruction"
    if graph.reachable(graph.roots, entry).intersection(effects):
        return "it can be entered elsewhere than where it begins"
    own = {address for address in graph.lines if copy.contains(address)} | {entry}
    behind = graph.successors.get(entry, ())
    if entry in _within(graph, behind, own):
        return "a loop of its own goes back to where it begins"
    after, before = graph.reachable(behind, entry), graph.reachable(effects, entry, backwards=True)
    for effect in effects:
        if effect == entry:
            continue
        again = graph.reachable(graph.successors.get(effect, ()), entry)
        if effect in again and not again & graph.reachable([effect], entry, backwards=True) <= own:
            return "it begins outside of a loop that it is in"
    for address in (after & before) - own:
        if graph.is_decision(address) and not before.issuperset(graph.successors.get(address, ())):
            return "where it begins, it is not yet decided that it is executed"
    return ""


def _within(graph: FlowGraph, starts: Collection[int], own: set[int]) -> set[int]:
    """Return what control can reach from `starts` without leaving `own`."""
    todo = [start for start in starts if start in own]
    seen = set(todo)
    while todo:
        for to in graph.successors.get(todo.pop(), ()):
            if to in own and to not in seen:
                seen.add(to)
                todo.append(to)
    return seen
