"""All that one trace is told of functions, made into specs for each binary."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from tracer.model.operations import FunctionSpec, Operation, SiteFlag, Spec
from tracer.specs.description import TYPE_CAPTURE, DescribedFunction, DescribedType, Description

FindNames = Callable[[str], Iterable[str]]
"""Gives the names of a binary's functions that match a pattern."""
_NEEDED = (Operation.GET, Operation.PUT)


class Catalogue:
    """Descriptions, whose types are numbered from 1 on: the number is the group of their addresses."""

    def __init__(self, descriptions: Sequence[Description] = ()) -> None:
        self.descriptions = descriptions
        self.types: dict[int, DescribedType] = {}
        """By group; grows as families are met in binaries."""
        self._members: dict[tuple[int, int, str], int] = {}
        self._fixed = [list(self._numbered(place)) for place in range(len(descriptions))]

    def _numbered(self, place: int) -> Iterator[FunctionSpec]:
        for number, type_ in enumerate(self.descriptions[place].types):
            if not type_.is_family:
                yield from _lowered(type_, 0 if type_.wraps else self._group(place, number, type_))

    def _group(self, place: int, number: int, type_: DescribedType) -> int:
        group = self._members.setdefault((place, number, type_.name), len(self._members) + 1)
        self.types.setdefault(group, type_)
        return group

    def specs(self, find_names: FindNames) -> list[Spec]:
        """Return the specs for a binary with these functions."""
        found = []
        for place, description in enumerate(self.descriptions):
            functions = [*self._fixed[place], *self._families(place, find_names)]
            if functions:
                found.append(Spec(description.name, tuple(functions), description.description, description.source))
        return found

    def _families(self, place: int, find_names: FindNames) -> Iterator[FunctionSpec]:
        for number, type_ in enumerate(self.descriptions[place].types):
            if type_.is_family:
                for member in expand(type_, find_names):
                    yield from _lowered(member, self._group(place, number, member))


def expand(family: DescribedType, find_names: FindNames) -> Iterator[DescribedType]:
    """Yield the types of a family that have a function of each get and put pattern."""
    captures: dict[str, set[str]] = {}
    for function in family.functions:
        name = function.spec.function
        if TYPE_CAPTURE in name:
            form = re.compile(re.escape(name).replace(re.escape(TYPE_CAPTURE), "(.+)", 1))
            matches = (form.fullmatch(found) for found in find_names(name.replace(TYPE_CAPTURE, "*")))
            captures[name] = {match[1] for match in matches if match}
    needed = [captures[f.spec.function] for f in family.functions
              if f.spec.operation in _NEEDED and f.spec.function in captures]  # fmt: skip
    for capture in sorted(set.intersection(*needed) if needed else set()):
        yield DescribedType(family.name.replace(TYPE_CAPTURE, capture), tuple(
            _named(function, capture) for function in family.functions
        ))  # fmt: skip


def _named(function: DescribedFunction, capture: str) -> DescribedFunction:
    spec = function.spec
    name, type_name = (text.replace(TYPE_CAPTURE, capture) for text in (spec.function, spec.type_name or ""))
    return replace(function, spec=replace(spec, function=name, type_name=type_name or None))


def _lowered(type_: DescribedType, group: int) -> Iterator[FunctionSpec]:
    for function in type_.functions:
        spec = replace(function.spec, group=group, memory=type_.memory)
        if group == 0 and spec.operation == Operation.FREE:  # as free() itself: complete at its entry
            spec = replace(spec, flags=spec.flags | SiteFlag.ENTRY_RESULT)
        elif group == 0 and spec.flags & SiteFlag.OUT_POINTER:  # as posix_memalign()
            spec = replace(spec, name=spec.object)
        yield spec
