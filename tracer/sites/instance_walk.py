"""Walk of an inlined instance's straight-line start, in which a probe may sit."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.architecture.current import ARCHITECTURE, argument
from tracer.architecture.instruction import Instruction, InstructionClass
from tracer.dwarf.inlined_instances import InlinedInstance
from tracer.elf.image import Image
from tracer.late_dataclasses import dataclass
from tracer.model.operations import NOWHERE, FunctionSpec, Location, LocationKind, Operation
from tracer.sites.flow_graph import FlowGraph
from tracer.sites.instance_effects import InstanceCode, tests_for_null, writes_memory
from tracer.sites.instance_locations import AlwaysNull, FindRule, NotThere, locate

LONGEST_WALK = 16
_LONGEST_INSTRUCTION = 15
_CHANGES = {Operation.GET: 1, Operation.PUT: -1}
_COUNTS = frozenset(("inc", "dec", "add", "sub", "xadd"))


@dataclass(frozen=True)
class Candidate:
    """An instruction that is passed whenever the copy begins, and where the values are before it."""

    instruction: Instruction
    object: Location
    holder: Location
    change: int
    """By what the counter has changed there already."""


def candidates(
    image: Image, function: FunctionSpec, instance: InlinedInstance, code: InstanceCode, entry: int, graph: FlowGraph,
    rule_at: FindRule,
) -> list[Candidate]:  # fmt: skip
    """Return the places up to the copy's first write to memory, never empty.

    Where the copy begins with a locked instruction, which the kernel does not probe, the place is behind it. Raises
    NotThere with what is in the way, AlwaysNull where the copy does nothing.
    """
    walk = _Walk(function, instance, code, entry, rule_at)
    for instruction in _straight(image, graph, entry):
        walk.look_at(instruction)
        if walk.change or (writes_memory(instruction) and not walk.passes(instruction)):
            break
        walk.leave(instruction)
    if not walk.found:
        raise walk.reason or NotThere("the kernel probes no instruction with such a prefix")
    return walk.found


def _straight(image: Image, graph: FlowGraph, entry: int) -> Iterator[Instruction]:
    """Yield instructions as long as each leads to the next, and nothing else does but what has skipped it for NULL."""
    address = entry
    for _ in range(LONGEST_WALK):
        offset = image.file_offset_of(address)
        if offset is None:
            return
        decoded = ARCHITECTURE.decode(bytes(image.data[offset : offset + _LONGEST_INSTRUCTION]), address, 1)
        if not decoded:
            return
        yield decoded[0]
        end = decoded[0].end
        if decoded[0].name == "call" or graph.successors.get(address) != (end,):
            return
        if any(not _skips(before, decoded[0], graph) for before in graph.predecessors[end] if before != address):
            return
        address = end


def _skips(jump: int, locked: Instruction, graph: FlowGraph) -> bool:
    """Tell whether a jump passes over a locked instruction because the pointer that this works on is NULL."""
    memory = locked.operands[0].memory if locked.operands and locked.mnemonic.startswith("lock") else None
    is_jump = graph.lines[jump].name == "je" and graph.lines[jump].target == locked.end
    base = memory.base if memory is not None else None
    return base is not None and is_jump and tests_for_null(jump, graph, {base})


class _Walk:
    def __init__(
        self, function: FunctionSpec, instance: InlinedInstance, code: InstanceCode, entry: int, rule_at: FindRule
    ) -> None:
        self._function, self._instance, self._entry, self._rule_at = function, instance, entry, rule_at
        self._stack = code.stack
        self._known: tuple[Location, Location] | None = None
        self.found: list[Candidate] = []
        self.reason: NotThere | None = None
        self.change = 0

    def look_at(self, instruction: Instruction) -> None:
        address, function = instruction.address, self._function
        try:
            self._known = (
                locate(function.object, self._instance, address, self._rule_at),
                locate(function.holder, self._instance, address, self._rule_at),
            )
        except AlwaysNull:
            raise
        except NotThere as reason:  # DWARF may lose sight of a register that still holds the value
            self.reason = self.reason or reason
            self._known = self._known or self._by_use(instruction)
        inside = self._instance.contains(address) or address == self._entry or self.change
        if self._known is not None and inside and _is_fit(instruction):
            self.found.append(Candidate(instruction, *self._known, self.change))

    def _by_use(self, instruction: Instruction) -> tuple[Location, Location] | None:
        """Return the register by which this instruction of the copy gets at the counter: that is the object."""
        counter = self._function.counter
        memory = next((operand.memory for operand in instruction.operands if operand.memory), None)
        if (
            self._function.object != argument(0) or self._function.holder
            or counter.kind != LocationKind.OBJECT or counter.dereference
            or memory is None or memory.base is None or memory.base in self._stack or not memory.plain
            or instruction.name == "lea"
            or not self._instance.contains(instruction.address)
            or memory.displacement != counter.adjust + counter.offset
        ):  # fmt: skip
            return None
        return Location(LocationKind.REGISTER, memory.base), NOWHERE

    def passes(self, instruction: Instruction) -> bool:
        """Go past the locked instruction that counts, if there is no place before it; tell whether it is one."""
        change = _CHANGES.get(self._function.operation, 0)
        memory = instruction.operands[0].memory
        counter = self._function.counter
        is_known = counter.kind == LocationKind.OBJECT and not counter.dereference
        if (
            self.found or not change or memory is None
            or not instruction.mnemonic.startswith("lock") or instruction.name not in _COUNTS
            or (is_known and memory.displacement not in (0, counter.adjust + counter.offset))
        ):  # fmt: skip
            return False
        self.change = change
        return True

    def leave(self, instruction: Instruction) -> None:
        """Forget what the instruction overwrites."""
        if self._known is not None and any(
            location.kind == LocationKind.CODE or _register(location) in instruction.written
            for location in self._known
        ):
            self._known = None


def _register(location: Location) -> int | None:
    if location.kind == LocationKind.STACK:
        return ARCHITECTURE.stack_pointer
    return location.register if location.kind == LocationKind.REGISTER else None


def _is_fit(instruction: Instruction) -> bool:
    """A 5-byte nop is rewritten into a call, which would write over what a leaf function has below its stack."""
    raw = instruction.raw
    return not ARCHITECTURE.is_refused(raw) and ARCHITECTURE.classify(raw) is not InstructionClass.NOP5
