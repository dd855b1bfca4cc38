"""Put probes on the inlined copies of described functions.

An inlined copy has no return, so what it does must be known where it begins, and its probe must be passed exactly
once for each execution: see tracer.sites.instance_effects. Copies that fail this are told with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import cached_property

from tracer.architecture.current import ARCHITECTURE
from tracer.architecture.instruction import Instruction
from tracer.cfi.unwind_cache import cached_table
from tracer.cfi.unwind_rules import NONE, Rule
from tracer.cfi.unwind_table import UnwindTable, lookup
from tracer.dwarf.inlined_instances import InlinedInstance
from tracer.elf.image import Image
from tracer.late_dataclasses import dataclass
from tracer.model.operations import FunctionSpec, LocationKind, Operation, Placement, Site, SiteFlag, constant
from tracer.model.records import RuleKind
from tracer.model.snapshot import UncoveredInstances
from tracer.sites.costs import NANOSECONDS, Cost, CostModel
from tracer.sites.flow_graph import FlowGraph, flow_graph
from tracer.sites.instance_effects import InstanceCode, code_of, has_foreign_condition, operations_in, why_not_entry
from tracer.sites.instance_locations import AlwaysNull, NotThere
from tracer.sites.instance_walk import candidates

_AT_ENTRY = (Operation.GET, Operation.PUT, Operation.DELETE, Operation.FREE)
_CHANGES = (Operation.GET, Operation.PUT, Operation.DELETE)
_COUNTED = (Operation.GET, Operation.PUT)
_UNKNOWN = {Operation.NONE: "what runs inside of it cannot be told from what runs around it"}
_LATE = "what it makes is known only when it has run"


@dataclass(frozen=True)
class _Seen:
    """A copy of a function of a spec, as far as it is known."""

    function: FunctionSpec
    instance: InlinedInstance
    code: InstanceCode

    @property
    def counter_at(self) -> int | None:
        """Return the counter's distance from the object, if it is one."""
        counter = self.function.counter
        if counter.kind != LocationKind.OBJECT or counter.dereference:
            return None
        return self.function.object.adjust + counter.adjust + counter.offset

    def is_like(self, other: FunctionSpec) -> bool:
        return (other.group, other.operation) == (self.function.group, self.function.operation)


@dataclass(frozen=True)
class PlacedInstances:
    placements: list[Placement] = field(default_factory=list)
    uncovered: list[UncoveredInstances] = field(default_factory=list)
    unseen: set[int] = field(default_factory=set)
    """Groups of the types whose counts change where no probe is."""


def place_instances(
    instances: Sequence[tuple[FunctionSpec, InlinedInstance]], sites: Sequence[Site], image: Image, costs: CostModel
) -> PlacedInstances:
    """Return the probes on inlined copies, and those copies that get none, by function and reason.

    `sites`: what is traced of functions that have code of their own.
    """
    found = PlacedInstances()
    missed: Counter[tuple[FunctionSpec, str]] = Counter()
    if image.machine != ARCHITECTURE.elf_machine:
        missed.update((function, "the architecture's instructions are not known") for function, _ in instances)
    else:
        placer = _Placer(instances, sites, image, costs)
        for seen in placer.seen:
            placed = placer.place(seen)
            if not isinstance(placed, str):
                found.placements.extend(placed)
            elif placed:
                missed[seen.function, placed] += 1
    found.unseen.update(f.group for f, _ in missed if f.operation in _CHANGES)
    found.uncovered.extend(
        UncoveredInstances(f.operation.name.lower(), f.type_name or "", f.function, count, reason)
        for (f, reason), count in missed.items()
    )
    return found


class _Placer:
    def __init__(
        self, instances: Sequence[tuple[FunctionSpec, InlinedInstance]], sites: Sequence[Site], image: Image,
        costs: CostModel,
    ) -> None:
        self._image, self._costs = image, costs
        self._traced: dict[int, list[FunctionSpec]] = {}
        for site in sites:
            self._traced.setdefault(site.link_address, []).append(site.function)
        self._graphs: dict[object, FlowGraph | None] = {}
        self.seen = [_Seen(function, one, code_of(image, one, self._stack(one))) for function, one in instances]
        self._by_offset: dict[int, list[_Seen]] = {}
        self._inner: dict[int, list[_Seen]] = {}
        for seen in self.seen:
            for offset in seen.instance.around:
                self._inner.setdefault(offset, []).append(seen)
            self._by_offset.setdefault(seen.instance.offset, []).append(seen)
        self._merging = {(s.function.group, s.instance.function_ranges) for s in self.seen if not self._effects(s)}

    def place(self, seen: _Seen) -> list[Placement] | str:
        """Return the probes; or why there are none, which is nothing where none is needed."""
        function = seen.function
        if function.operation not in _AT_ENTRY:
            return "" if self._is_within_or_above(seen) else _UNKNOWN.get(function.operation, _LATE)
        if function.failure:
            return "whether it succeeds is not known where it begins"
        graph = self._graph(seen.instance)
        if graph is None:
            return "the function that it is in cannot be decoded"
        effects = self._effects(seen)
        own = effects - self._of_others(seen)
        if effects and not own:
            return ""  # all that it does is done by what is traced inside of it
        why = self._why_ambiguous(seen) or self._why_countless(seen, effects)
        return why if why else self._placed(seen, graph, effects)

    def _graph(self, instance: InlinedInstance) -> FlowGraph | None:
        if instance.function_ranges not in self._graphs:
            self._graphs[instance.function_ranges] = flow_graph(self._image, instance.function_ranges)
        return self._graphs[instance.function_ranges]

    def _effects(self, seen: _Seen) -> frozenset[int]:
        """Return what writes memory, calls, or jumps to other functions."""
        graph = self._graph(seen.instance)
        known = graph.lines if graph else {}
        lines = (known.get(address) for address in seen.code.instructions)
        return seen.code.effects() | {line.address for line in lines if line and line.name == "jmp"
                                      and line.target is not None and line.target not in known}  # fmt: skip

    def _is_within_or_above(self, seen: _Seen) -> bool:
        """Tell whether a create is but the inside, or the outside, of one that is traced."""
        around = self._traced.get(seen.instance.function_ranges[0][0], ()) if seen.instance.function_ranges else ()
        return any(map(seen.is_like, around)) or bool(self._calls_of_like(seen))

    def _calls_of_like(self, seen: _Seen) -> set[int]:
        """Return the calls of traced functions that do the same to the same type."""
        graph = self._graph(seen.instance)
        lines = graph.lines if graph else {}
        return {
            address for address in seen.code.instructions
            if address in lines and lines[address].name in ("call", "jmp")
            and any(map(seen.is_like, self._traced.get(lines[address].target or 0, ())))
        }  # fmt: skip

    def _inside(self, seen: _Seen) -> Iterator[_Seen]:
        """Yield the copies inside of one that do the same to the same type."""
        for other in self._inner.get(seen.instance.offset, ()):
            if seen.is_like(other.function):
                yield other

    def _of_others(self, seen: _Seen) -> set[int]:
        inside = (address for other in self._inside(seen) for address in other.code.instructions)
        return self._calls_of_like(seen).union(inside)

    def _why_ambiguous(self, seen: _Seen) -> str:
        """Return why a copy may count twice, once for itself and once for what it calls or is in."""
        if self._calls_of_like(seen):
            return "it calls one that is traced, perhaps for the same object"
        outer = (
            o for offset in seen.instance.around for o in self._by_offset.get(offset, ()) if o.is_like(seen.function)
        )
        for one in (*outer, *self._inside(seen)):
            if one is not seen and one.code.effects() - self._of_others(one):
                return "it is within another copy, or another in it, perhaps for the same object"
        return ""

    def _why_countless(self, seen: _Seen, effects: frozenset[int]) -> str:
        if not effects:
            return "it changes no memory: the compiler has merged it with others"
        if (seen.function.group, seen.instance.function_ranges) in self._merging:
            return "another in the same function was merged, perhaps with this one"
        counts_many = seen.function.operation in _COUNTED and seen.code.counts_more_than_one(seen.counter_at)
        return "it counts by more than one: the compiler has merged several" if counts_many else ""

    def _placed(self, seen: _Seen, graph: FlowGraph, effects: frozenset[int]) -> list[Placement] | str:
        try:
            with suppress(NotThere):
                exact = self._exact(seen, graph)
                if exact:
                    return [self._placement(seen, start, graph) for start in exact]
            return self._at_entry(seen, graph, effects)
        except AlwaysNull:
            return ""

    def _exact(self, seen: _Seen, graph: FlowGraph) -> list[int]:
        """Return the blocks that change the counter, where that is the operation itself."""
        if seen.counter_at is None or seen.function.operation not in _COUNTED:
            return []
        return operations_in(seen.instance, seen.code, graph, seen.counter_at)

    def _at_entry(self, seen: _Seen, graph: FlowGraph, effects: frozenset[int]) -> list[Placement] | str:
        counts = seen.function.operation in _COUNTED
        used = seen.code.on_counter(seen.counter_at) if seen.counter_at is not None else {}
        reasons: list[str] = []
        for entry in dict.fromkeys((seen.instance.entry, *(start for start, _ in seen.instance.ranges))):
            why = why_not_entry(entry, seen.instance, graph, effects)
            if not why and counts and has_foreign_condition(entry, seen.instance, seen.code, graph, used or effects):
                why = "it is merged with a condition of its surroundings"
            if not why:
                try:
                    return [self._placement(seen, entry, graph)]
                except AlwaysNull:
                    raise
                except NotThere as reason:
                    why = str(reason)
            reasons.append(why)
        return reasons[0]

    def _placement(self, seen: _Seen, entry: int, graph: FlowGraph) -> Placement:
        """Return the cheapest place between the entry and the first effect; raises NotThere."""
        found = candidates(self._image, seen.function, seen.instance, seen.code, entry, graph, self._rule_at)
        best = min(found, key=lambda c: (NANOSECONDS[self._cost(c.instruction)], c.instruction.address))
        cost = self._cost(best.instruction)
        spec = replace(seen.function, flags=seen.function.flags | SiteFlag.ENTRY_RESULT | SiteFlag.INLINED)
        offset = self._image.file_offset_of(entry)
        if offset is None:
            raise NotThere("it has no code in the file")
        site = Site(spec, self._image.path, offset, entry, inlined=True)
        return Placement(
            site,
            offset + best.instruction.address - entry,
            best.instruction.address - entry,
            counter=spec.counter,
            size=constant(best.change) if best.change else spec.size,
            instruction=best.instruction.text,
            cost=cost.value,
            reason="no cheaper instruction stands where it begins" if cost is Cost.STEP else "",
            object=best.object,
            holder=best.holder,
        )

    def _cost(self, instruction: Instruction) -> Cost:
        return self._costs.cost_of(instruction.raw, instruction.address)

    def _stack(self, instance: InlinedInstance) -> frozenset[int]:
        has_frame_pointer = self._rule_at(instance.entry).kind == RuleKind.FRAME_POINTER
        frame_pointer = (ARCHITECTURE.frame_pointer,) if has_frame_pointer else ()
        return frozenset((ARCHITECTURE.stack_pointer, *frame_pointer))

    def _rule_at(self, address: int) -> Rule:
        return lookup(self._table, address) if self._table is not None else NONE

    @cached_property
    def _table(self) -> UnwindTable | None:
        return cached_table(self._image)
