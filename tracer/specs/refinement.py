"""Refinement of a spec by a binary's DWARF: where its counters are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from tracer.dwarf.debug_facts import DebugFacts
from tracer.late_dataclasses import dataclass
from tracer.model.operations import FunctionSpec, Location, Operation, SiteFlag
from tracer.model.snapshot import Unresolved
from tracer.specs.description import DescribedType
from tracer.specs.functions import counter_at

_CHANGES = (Operation.GET, Operation.PUT, Operation.DELETE)


@dataclass(frozen=True)
class Refinement:
    """Counters by the group of their type, as far as a spec names them by a member."""

    counters: Mapping[int, Location]
    unresolved: tuple[Unresolved, ...] = ()

    def apply(self, spec: FunctionSpec) -> FunctionSpec:
        """Return the function with its counter, if its own description says none."""
        counter = self.counters.get(spec.group)
        if counter and spec.operation in (Operation.CREATE, *_CHANGES) and not spec.counter:
            return replace(spec, counter=counter, flags=spec.flags | SiteFlag.COUNTER)
        return spec


def refinement(groups: Iterable[int], types: Mapping[int, DescribedType], facts: DebugFacts) -> Refinement:
    """Return what DWARF knows of the types that have functions in a binary."""
    found = {group: _member(types[group], facts) for group in groups if group in types}
    unresolved = tuple(
        Unresolved("counter", types[group].name, member, f"no {member} in DWARF: counts are followed, not read")
        for group, (member, location) in found.items()
        if member and not location
    )
    return Refinement({group: location for group, (_, location) in found.items() if location}, unresolved)


def following(spec: FunctionSpec, unseen: Collection[int], inlined: Collection[int] = ()) -> FunctionSpec:
    """Return the function told to believe its counter, if it belongs to a type whose copies are not all covered.

    A delete believes it wherever functions of the type were `inlined`: compilers merge copies without a word in DWARF,
    and nobody is to be accused of deleting what is referenced on the strength of calls alone.
    """
    follows = spec.group in unseen or (spec.operation == Operation.DELETE and spec.group in inlined)
    if follows and spec.flags & SiteFlag.COUNTER:
        return replace(spec, flags=spec.flags | SiteFlag.FOLLOWS)
    return spec


def _member(type_: DescribedType, facts: DebugFacts) -> tuple[str, Location]:
    """Return the counter's member and its location: in the struct that the type's gets and puts are given."""
    member = next((f.member for f in type_.functions if f.member), "")
    for function in type_.functions if member else ():
        known = facts.functions.get(function.spec.function)
        if known is None or function.spec.operation not in _CHANGES or not known.parameters:
            continue
        for found in facts.structs.get(known.parameters[0].struct, ()):
            if found.name == member:
                return member, counter_at(found.offset)
    return member, Location()
