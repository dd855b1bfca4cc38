"""Effects of an inlined instance on memory, and where it begins so that each execution is seen once."""

from __future__ import annotations

from collections.abc import Collection

from tracer.architecture.current import ARCHITECTURE
from tracer.architecture.instruction import Instruction
from tracer.dwarf.inlined_instances import InlinedInstance
from tracer.dwarf.value_expressions import Base, ValuePlace
from tracer.elf.image import Image
from tracer.late_dataclasses import dataclass
from tracer.sites.flow_graph import FlowGraph

_READ_ONLY = frozenset(
    ("test", "cmp", "bt", "nop", "push", "jmp", "mul", "imul", "div", "idiv", "ucomiss", "ucomisd", "comiss", "comisd",
     "prefetcht0", "prefetcht1", "prefetcht2", "prefetchnta", "prefetchw", "endbr64", "call")
)  # fmt: skip
_LEAVES_FLAGS = ("mov", "lea", "push", "pop", "nop")
_BY_AMOUNT = ("add", "sub")
_LONGEST_COPY = 4096


@dataclass(frozen=True)
class InstanceCode:
    """The instructions of a copy, by address."""

    instructions: dict[int, Instruction]
    stack: frozenset[int]
    """The registers that point to the stack: the frame pointer too, where the function has a frame pointer."""

    def effects(self) -> frozenset[int]:
        """Return what writes memory or calls; the stack counts only where nothing else is written."""
        calls = {a for a, i in self.instructions.items() if i.name == "call"}
        stores = {a for a, i in self.instructions.items() if writes_memory(i)}
        elsewhere = {a for a in stores if not self._is_on_stack(self.instructions[a])}
        return frozenset(calls | elsewhere or stores)

    def _is_on_stack(self, instruction: Instruction) -> bool:
        memory = next((operand.memory for operand in instruction.operands if operand.memory), None)
        return memory is not None and memory.base in self.stack

    def on_counter(self, displacement: int) -> dict[int, Instruction]:
        """Return what uses memory at a distance from a register, the stack's apart."""
        return {
            address: instruction for address, instruction in self.instructions.items()
            if instruction.name != "lea" and any(
                o.memory is not None and o.memory.plain and o.memory.displacement == displacement
                and o.memory.base is not None and o.memory.base not in self.stack
                for o in instruction.operands
            )
        }  # fmt: skip

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


def code_of(image: Image, instance: InlinedInstance, stack: frozenset[int]) -> InstanceCode:
    """Return the decoded copy; what does not decode is missing. `stack`: the registers that point to the stack."""
    found = {}
    for start, end in instance.ranges:
        offset = image.file_offset_of(start)
        if offset is not None:
            code = bytes(image.data[offset : offset + end - start])
            found.update({one.address: one for one in ARCHITECTURE.decode(code, start, _LONGEST_COPY)})
    return InstanceCode(found, stack)


def writes_memory(instruction: Instruction) -> bool:
    operands = instruction.operands
    if instruction.name in _READ_ONLY or not operands:
        return False
    return operands[0].memory is not None or (instruction.name in ("xchg", "xadd") and operands[-1].memory is not None)


def operations_in(instance: InlinedInstance, code: InstanceCode, graph: FlowGraph, displacement: int) -> list[int]:
    """Return where the blocks begin that each change the counter, once: exactly one of them is the operation.

    Empty where the counter is changed in a loop, by more than one store on a way, or not in sight.
    """
    used = code.on_counter(displacement)
    stores = {address for address, instruction in used.items() if writes_memory(instruction)}
    if not stores or any(used[address].name == "cmpxchg" for address in stores):
        return []
    own = {address for address in graph.lines if instance.contains(address)}
    if any(_within(graph, graph.successors.get(store, ()), own) & stores for store in stores):
        return []
    return sorted({_block_start(store, own, graph) for store in stores})


def _block_start(address: int, own: Collection[int], graph: FlowGraph) -> int:
    """Return the first instruction of the copy that leads to `address`, and to nothing else."""
    while True:
        before = graph.predecessors.get(address, ())
        if len(before) != 1 or before[0] not in own or graph.successors.get(before[0]) != (address,):
            return address
        if graph.lines[before[0]].name == "call" or graph.is_decision(before[0]):
            return address
        address = before[0]


def has_foreign_condition(
    entry: int, instance: InlinedInstance, code: InstanceCode, graph: FlowGraph, uses: Collection[int]
) -> bool:
    """Tell whether a copy's code holds a condition that comes before `uses` and is no test of a pointer for NULL.

    Compilers attribute a condition of the surroundings to a copy when they merge it with the copy's own.
    """
    if _comes_from(entry, graph, uses):
        return False
    operands = (operand for address in uses for operand in code.instructions[address].operands)
    bases = {o.memory.base for o in operands if o.memory is not None and o.memory.base is not None}
    given = (parameter.at(entry) for parameter in instance.parameters)
    bases.update(p.register for p in given if isinstance(p, ValuePlace) and p.base is Base.REGISTER)
    after = graph.reachable([entry], -1)
    untouched = _before(graph, entry, set(uses))
    leading = graph.reachable(uses, -1, backwards=True)
    return any(
        graph.is_decision(address) and not tests_for_null(address, graph, bases)
        for address in after & untouched & leading
        if instance.contains(address)
    )


def _comes_from(entry: int, graph: FlowGraph, uses: Collection[int]) -> bool:
    """Tell whether the counter is used before `entry` already, with nothing to decide in between."""
    address, before = entry, graph.predecessors.get(entry, ())
    while len(before) == 1 and len(graph.successors[before[0]]) == 1 and before[0] != entry:
        address = before[0]
        if address in uses:
            return True
        before = graph.predecessors.get(address, ())
    return False


def _before(graph: FlowGraph, entry: int, uses: set[int]) -> set[int]:
    """Return what control passes from `entry` on before it comes to one of `uses`."""
    todo, seen = [entry], {entry}
    while todo:
        address = todo.pop()
        if address in uses:
            continue
        for to in graph.successors.get(address, ()):
            if to not in seen:
                seen.add(to)
                todo.append(to)
    return seen - uses


def tests_for_null(address: int, graph: FlowGraph, registers: Collection[int]) -> bool:
    """Tell whether the condition at `address` is a test of a pointer, in one of `registers`, for NULL."""
    for before in graph.predecessors.get(address, ()):
        while graph.lines[before].name.startswith(_LEAVES_FLAGS) and len(graph.predecessors.get(before, ())) == 1:
            (before,) = graph.predecessors[before]
        test = graph.lines[before]
        first, _, second = test.operands.partition(", ")
        is_test = (test.name, second) in (("test", first), ("cmp", "0"))
        if not is_test or ARCHITECTURE.register_of(first) not in registers:
            return False
    return True


def why_not_entry(entry: int, instance: InlinedInstance, graph: FlowGraph, effects: Collection[int]) -> str:
    """Return why passing `entry` is not the same as executing the copy once; nothing where it is.

    It is where every way to an effect of the copy leads through it, once, and where no condition but the copy's own
    lies between.
    """
    if entry not in graph.lines:
        return "it begins inside of an instruction"
    if graph.reachable(graph.roots, entry).intersection(effects):
        return "it can be entered elsewhere than where it begins"
    own = {address for address in graph.lines if instance.contains(address)} | {entry}
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
