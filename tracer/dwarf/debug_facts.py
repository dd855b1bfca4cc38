"""Facts of DWARF about functions and the structs that they work on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field

from tracer.dwarf.die_scan import Tag, Unit, read_units
from tracer.dwarf.entry_rows import Entry
from tracer.dwarf.inlined_instances import InstanceEntry
from tracer.elf.image import Image
from tracer.late_dataclasses import dataclass

_THROUGH = (Tag.CONST, Tag.VOLATILE, Tag.ATOMIC, Tag.TYPEDEF)
_LONGEST_CHAIN = 16


@dataclass(frozen=True)
class Pointee:
    """What a value points to: a struct's name, and through how many pointers. Empty and 0 for anything else."""

    struct: str = ""
    pointers: int = 0
    is_const: bool = False
    """What is pointed to is const: a borrowed object. Only headers tell."""


@dataclass(frozen=True)
class FunctionFacts:
    name: str
    parameters: tuple[Pointee, ...]
    returns: Pointee


@dataclass(frozen=True)
class Member:
    name: str
    offset: int
    type_name: str
    """The first name on the way to the type: of a typedef, a struct, a base type."""


@dataclass
class DebugFacts:
    functions: dict[str, FunctionFacts] = field(default_factory=dict)
    structs: dict[str, tuple[Member, ...]] = field(default_factory=dict)
    instances: dict[str, tuple[InstanceEntry, ...]] = field(default_factory=dict)
    """Copies of each function in the code of others."""

    @property
    def inlined(self) -> Counter[str]:
        """Return how many copies each function has; 0 for all others."""
        return Counter({name: len(instances) for name, instances in self.instances.items()})


def read_debug_facts(image: Image) -> DebugFacts:
    """Read all of a binary's DWARF; empty where there is none. Seconds for a large one."""
    facts = DebugFacts()
    originals: dict[int, _Original] = {}
    instances: dict[int, list[_Instance]] = {}
    for unit in read_units(image):
        _UnitFacts(unit, facts).collect(originals, instances)
    for origin, found in instances.items():
        original = originals.get(origin)
        if original is not None and original.name:
            entries = (InstanceEntry(unit, offset, around, original.parameters) for unit, offset, around in found)
            facts.instances[original.name] = (*facts.instances.get(original.name, ()), *entries)
    return facts


_Instance = tuple[int, int, tuple[int, ...]]
"""Unit, offset, and what it is in, as in InstanceEntry."""


@dataclass(frozen=True)
class _Original:
    name: str
    parameters: tuple[int, ...]


class _UnitFacts:
    def __init__(self, unit: Unit, facts: DebugFacts) -> None:
        self._facts = facts
        self._unit = unit.offset
        self._entries = unit.entries
        self._types: dict[int, Entry] = {e.offset: e for e in unit.entries if e.tag not in _PARTS}

    def collect(self, originals: dict[int, _Original], instances: dict[int, list[_Instance]]) -> None:
        parameters: dict[int, list[Entry]] = {}
        members: dict[int, list[Entry]] = {}
        for entry in self._entries:
            if entry.tag == Tag.FORMAL_PARAMETER:
                parameters.setdefault(entry.parent, []).append(entry)
            elif entry.tag == Tag.MEMBER:
                members.setdefault(entry.parent, []).append(entry)
        for entry in self._entries:
            if entry.tag == Tag.SUBPROGRAM and entry.name:
                own = parameters.get(entry.offset, [])
                originals[entry.offset] = _Original(entry.name, tuple(p.offset for p in own))
                if entry.name not in self._facts.functions:
                    self._facts.functions[entry.name] = self._function(entry, own)
        self._collect_instances(instances)
        self._collect_structs(members)

    def _collect_instances(self, instances: dict[int, list[_Instance]]) -> None:
        scopes = {e.offset: e for e in self._entries if e.tag in (Tag.SUBPROGRAM, Tag.INLINED)}
        for entry in self._entries:
            if entry.tag != Tag.INLINED or not entry.origin or _is_part(entry, scopes):
                continue
            around = [entry.scope]
            while around[-1] in scopes and scopes[around[-1]].tag == Tag.INLINED:
                around.append(scopes[around[-1]].scope)
            instances.setdefault(entry.origin, []).append((self._unit, entry.offset, tuple(around)))

    def _collect_structs(self, members: Mapping[int, list[Entry]]) -> None:
        names = {e.type: e.name for e in self._entries if e.tag == Tag.TYPEDEF}
        for entry in self._entries:
            name = entry.name or names.get(entry.offset, "")
            if entry.tag != Tag.STRUCTURE or not name or name in self._facts.structs or entry.offset not in members:
                continue
            self._facts.structs[name] = tuple(
                Member(m.name, m.member_offset, self._type_name(m.type))
                for m in members[entry.offset]
                if m.member_offset is not None and m.member_offset >= 0
            )

    def _function(self, entry: Entry, parameters: list[Entry]) -> FunctionFacts:
        return FunctionFacts(entry.name, tuple(self._pointee(p.type) for p in parameters), self._pointee(entry.type))

    def _pointee(self, offset: int) -> Pointee:
        pointers, name = 0, ""
        for _ in range(_LONGEST_CHAIN):
            entry = self._types.get(offset)
            if entry is None:
                break
            if entry.tag == Tag.STRUCTURE:
                return Pointee(entry.name or name, pointers)
            if entry.tag == Tag.POINTER:
                pointers += 1
            elif entry.tag == Tag.TYPEDEF:
                name = entry.name
            elif entry.tag not in _THROUGH:
                break
            offset = entry.type
        return Pointee()

    def _type_name(self, offset: int) -> str:
        for _ in range(_LONGEST_CHAIN):
            entry = self._types.get(offset)
            if entry is None or entry.tag == Tag.POINTER:
                return ""
            if entry.name:
                return entry.name
            offset = entry.type
        return ""


def _is_part(instance: Entry, scopes: Mapping[int, Entry]) -> bool:
    """Tell whether it is a piece that GCC split from a function and put back: it is called from the function's head.

    A copy in a copy of the same function with a call of its own is a recursion.
    """
    around, original = scopes.get(instance.scope), scopes.get(instance.origin)
    if around is None or instance.origin not in (around.offset, around.origin):
        return False
    return original is None or original.line == instance.line


_PARTS = (Tag.FORMAL_PARAMETER, Tag.MEMBER, Tag.INLINED, Tag.SUBPROGRAM)
