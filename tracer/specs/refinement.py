"""What a binary's DWARF adds to a spec: where a counter is, and which functions have copies that no probe covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tracer.elf.debug_facts import DebugFacts
from tracer.model.operations import FunctionSpec, Location, Operation, Site, SiteFlag
from tracer.model.snapshot import Unresolved
from tracer.specs.description import DescribedType
from tracer.specs.functions import counter_at

_CHANGES = (Operation.GET, Operation.PUT, Operation.DELETE)


@dataclass(frozen=True)
class Refined:
    sites: list[Site]
    unresolved: list[Unresolved]
    inlined: tuple[tuple[str, int], ...]
    """Functions of the types found here, and their copies inlined elsewhere."""


def refine(sites: Sequence[Site], types: dict[int, DescribedType], facts: DebugFacts) -> Refined:
    """Return the sites with what DWARF knows of their types' counters and inlined functions."""
    groups = dict.fromkeys(site.function.group for site in sites if site.function.group in types)
    counters = {group: _member(types[group], facts) for group in groups}
    inlined = {group: _inlined(types[group], facts) for group in groups}
    unresolved = [
        Unresolved("create", types[group].name, member, f"no {member} in DWARF: counts are followed, not read")
        for group, (member, location) in counters.items()
        if member and not location
    ]
    follows = {group for group in groups if any(_changes(types[group], name) for name, _ in inlined[group])}
    refined = [
        replace(site, function=_with_facts(site.function, counters, follows)) if site.function.group in groups else site
        for site in sites
    ]
    return Refined(refined, unresolved, tuple(dict.fromkeys(copy for group in groups for copy in inlined[group])))


def _inlined(type_: DescribedType, facts: DebugFacts) -> list[tuple[str, int]]:
    names = dict.fromkeys(function.spec.function for function in type_.functions)
    return [(name, facts.inlined[name]) for name in names if facts.inlined[name]]


def _changes(type_: DescribedType, name: str) -> bool:
    return any(f.spec.function == name and f.spec.operation in _CHANGES for f in type_.functions)


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


def _with_facts(spec: FunctionSpec, counters: dict[int, tuple[str, Location]], follows: set[int]) -> FunctionSpec:
    counter = counters[spec.group][1]
    if counter and spec.operation in (Operation.CREATE, *_CHANGES) and not spec.counter:
        spec = replace(spec, counter=counter, flags=spec.flags | SiteFlag.COUNTER)
    if spec.group in follows and spec.flags & SiteFlag.COUNTER:
        spec = replace(spec, flags=spec.flags | SiteFlag.FOLLOWS)
    return spec
