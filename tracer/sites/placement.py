"""Move a site to the cheapest instruction that sees the same values.

A probe may sit anywhere on the straight-line start of a function, since each call passes there once:
after the first instruction as long as nothing branches back to or before it, the arguments can still
be found, and nothing else was executed that could be told from outside. The instruction's own cost
decides among these places (tracer.sites.costs).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import dropwhile

from tracer.architecture.current import ARCHITECTURE
from tracer.architecture.instruction import Flow, Instruction, InstructionClass, Memory
from tracer.elf.image import Image
from tracer.late_dataclasses import dataclass
from tracer.model.operations import Location, LocationKind, Operation, Placement, Site, SiteFlag, place_at_entry
from tracer.sites.costs import LONG_NOPS, NANOSECONDS, Cost, CostModel
from tracer.sites.values import Value, Values

LONGEST_START = 16
LARGEST_FUNCTION = 1 << 16
_FIELDS = ("object", "counter", "count", "size", "name", "holder")
_REFUSED = "the kernel probes no instruction with such a prefix"
_LOCKED = ("lock inc", "lock dec", "lock add", "lock sub")
"""They write their memory operand and the flags, and nothing else."""
_NOPS = ("nop", "endbr64")
_KEPT = frozenset(ARCHITECTURE.preserved_registers) - {ARCHITECTURE.stack_pointer}
_CHANGES = {Operation.GET: 1, Operation.PUT: -1}
_NULL_IS_NO_CALL = (Operation.FREE, Operation.GET, Operation.PUT, Operation.DELETE)


@dataclass(frozen=True)
class _Candidate:
    """One instruction where a probe may sit; `locations` is None where the arguments are gone."""

    instruction: Instruction
    cost: Cost
    return_distance: int
    locations: dict[str, Location] | None
    past_null: bool
    """Calls with NULL have left the function before."""

    @property
    def rank(self) -> tuple[int, bool, int]:
        return (NANOSECONDS[self.cost], not self.past_null, self.instruction.address)


def place(site: Site, image: Image, costs: CostModel) -> Placement:
    """Return the cheapest placement of `site`; at its entry where nothing better, or nothing, is known.

    `reason` is set where the placement is single-stepped or cannot be probed (`cost` is empty then).
    """
    if image.machine != ARCHITECTURE.elf_machine:
        return replace(place_at_entry(site), reason="the architecture's instructions are not known")
    size = min(site.size, LARGEST_FUNCTION)
    code = bytes(image.data[site.file_offset : site.file_offset + (size or 16)])
    start = ARCHITECTURE.decode(code, site.link_address, LONGEST_START if size else 1)
    if not start:
        return replace(place_at_entry(site), reason="its first instruction cannot be decoded")
    flow = ARCHITECTURE.flow_of(code, site.link_address)
    if size < site.size:
        flow = replace(flow, certain=False)
    walk = _Walk(site, start, flow, costs)
    candidates = list(walk.candidates())
    if site.function.flags & SiteFlag.ENTRY_RESULT:
        return _placed_once(site, candidates, walk.end) or _placed_past_change(site, start, flow, costs)
    return _placed_with_return(site, candidates, walk.end)


class _Walk:
    """One pass over the straight-line start; `end` says why it went no further."""

    def __init__(self, site: Site, start: list[Instruction], flow: Flow, costs: CostModel) -> None:
        self.site = site
        self.start = start
        self.flow = flow
        self.costs = costs
        self.end = ""
        self.past_null = False
        spec = site.function
        self.locations = {field: getattr(spec, field) for field in _FIELDS}
        reads_memory = any(location.dereference for location in self.locations.values())
        self.values = Values(self.locations.values(), reads_memory or bool(spec.flags & SiteFlag.COUNTER))

    def candidates(self) -> Iterator[_Candidate]:
        only_nops = True
        for instruction in self.start:
            if any(self.site.link_address < target <= instruction.address for target in self.flow.targets):
                self.end = f"a branch lands at or before `{instruction.text}`"
                return
            if (only_nops or self._is_passed_once(instruction)) and self._is_fit(instruction):
                yield self._candidate(instruction)
            only_nops = only_nops and instruction.mnemonic in _NOPS
            if self._crosses_for_null(instruction):
                self.past_null = True
                continue
            self.end = self.values.follow(instruction) or self._hides_caller(instruction)
            if self.end:
                return
        self.end = "no cheaper instruction is near" if self.site.size else "its size is not known"

    def _is_passed_once(self, instruction: Instruction) -> bool:
        """Trust branches that cannot be read to pass by a push: going back to one would unbalance the stack."""
        return self.flow.certain or ARCHITECTURE.classify(instruction.raw) is InstructionClass.PUSH

    def _is_fit(self, instruction: Instruction) -> bool:
        if self.costs.refuses(instruction.raw):
            return False
        # The call that replaces such a nop pushes onto the stack, over what was stored below the stack pointer. With a
        # 10-byte one the kernel is to step over that first; who has one there has lost nothing by another place.
        return not (self.values.uses_red_zone and ARCHITECTURE.classify(instruction.raw) in LONG_NOPS)

    def _candidate(self, instruction: Instruction) -> _Candidate:
        locations = None
        if not self.values.lost:
            locations = {field: self.values.locate(location) for field, location in self.locations.items()}
        cost = self.costs.cost_of(instruction.raw, instruction.address)
        return _Candidate(instruction, cost, self.values.depth, locations, self.past_null)

    def _hides_caller(self, instruction: Instruction) -> str:
        """Return why what the caller has in registers can no longer be read, which tells what it called to free."""
        changed = _KEPT & instruction.written
        if self.site.function.operation != Operation.FREE or not changed:
            return ""
        return f"`{instruction.text}` changes {ARCHITECTURE.name_of(min(changed))}, which the caller has a value in"

    def _crosses_for_null(self, instruction: Instruction) -> bool:
        """Tell whether this is the forward jump of a call with NULL, which is no event."""
        spec = self.site.function
        if instruction.mnemonic != "je" or instruction.operands[0].immediate is None:
            return False
        pointers = [_plain_value(spec.object), _plain_value(spec.counter)]
        return (
            spec.operation in _NULL_IS_NO_CALL
            and bool(spec.flags & SiteFlag.ENTRY_RESULT)
            and self.values.tested is not None
            and self.values.tested in pointers
            and instruction.operands[0].immediate > instruction.address
        )


def _plain_value(location: Location) -> Value | None:
    plain = location.kind == LocationKind.REGISTER and not location.dereference and not location.adjust
    return (location.kind, location.register) if plain else None


def _placed_once(site: Site, candidates: list[_Candidate], end: str) -> Placement | None:
    fit = [c for c in candidates if c.locations is not None]
    return _placement(site, min(fit, key=lambda c: c.rank), None, _why(candidates, end)) if fit else None


def _placed_past_change(site: Site, start: list[Instruction], flow: Flow, costs: CostModel) -> Placement:
    """Probe a stub that begins with its `lock inc` behind it, and say by what the counter has changed there.

    Nops that must not be probed may stand before it.

    A stub that is nothing but an atomic operation is what compilers make of the plainest source.
    """
    refused = replace(place_at_entry(site), reason=_REFUSED)
    spec, counter = site.function, _plain_value(site.function.counter)
    change = _CHANGES.get(spec.operation)
    body = list(dropwhile(lambda instruction: instruction.mnemonic in _NOPS, start))
    if len(body) < 2 or change is None or counter is None or not flow.certain:
        return refused
    locked, behind = body[0], body[1]
    memory = locked.operands[0].memory if locked.operands else None
    if (
        locked.mnemonic not in _LOCKED
        or memory != Memory(counter[1], 0, plain=True)
        or costs.refuses(behind.raw)
        or any(site.link_address < target <= behind.address for target in flow.targets)
    ):
        return refused
    locations = {field: getattr(spec, field) for field in _FIELDS}
    locations["size"] = Location(LocationKind.CONSTANT, offset=change)
    cost = costs.cost_of(behind.raw, behind.address)
    return _placement(site, _Candidate(behind, cost, 0, locations, False), None, "the kernel probes no locked one")


def _placed_with_return(site: Site, candidates: list[_Candidate], end: str) -> Placement:
    """Choose entry and return probe together: one instruction for both is hit once.

    The kernel takes the word at the stack pointer for the return address, so a return probe needs distance 0.
    """
    entries = [c for c in candidates if c.locations is not None]
    returns = [c for c in candidates if c.return_distance == 0]
    pairs = [(e, r) for e in entries for r in returns]
    if not pairs:
        return replace(place_at_entry(site), reason=_REFUSED)

    def price(pair: tuple[_Candidate, _Candidate]) -> tuple[int, int, int]:
        entry, back = pair
        second = 0 if back is entry else NANOSECONDS[back.cost]
        return (NANOSECONDS[entry.cost] + second, entry.instruction.address, back.instruction.address)

    entry, back = min(pairs, key=price)
    moved = any(c.return_distance and c.cost is not Cost.STEP for c in entries)
    reason = "the return probe must sit where the stack has not moved yet" if moved else _why(candidates, end)
    return _placement(site, entry, back, reason)


def _why(candidates: list[_Candidate], end: str) -> str:
    """Return what kept the probe from a cheaper place, for the case that it is a dear one."""
    gone = next((c for c in candidates if c.locations is None), None)
    return end if gone is None else f"an argument is gone before `{gone.instruction.text}`"


def _placement(site: Site, entry: _Candidate, back: _Candidate | None, reason: str) -> Placement:
    worst = max((entry, back or entry), key=lambda c: NANOSECONDS[c.cost])
    return_offset = None
    if back is not None and back is not entry:
        return_offset = _file_offset(site, back)
    return Placement(
        site,
        _file_offset(site, entry),
        entry.return_distance,
        **(entry.locations or {}),
        instruction=entry.instruction.text,
        cost=worst.cost.value,
        reason=reason if worst.cost is Cost.STEP else "",
        return_file_offset=return_offset,
    )


def _file_offset(site: Site, candidate: _Candidate) -> int:
    return site.file_offset + candidate.instruction.address - site.link_address
