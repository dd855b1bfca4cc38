"""The puts of each type: a put that was called from within one of another type is done by that object's end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from tracer.analysis.reference_sites import Path, Places
from tracer.analysis.stacks import SymbolizedStacks

_CALLERS = 3
"""Calls of what is taken for the put of a type, at least."""


class Putters:
    def __init__(self, table: SymbolizedStacks, puts: Mapping[str, Iterable[int]]) -> None:
        """`puts`: the stacks of each type's puts. A function at the leaf of all of them is the type's put."""
        self._table = table
        self._types: defaultdict[str, set[str]] = defaultdict(set)
        self._callers: defaultdict[Path, set[str]] = defaultdict(set)
        """Types by the callers of their puts: a put that ends in a jump to what deletes is not on the stack."""
        self._wrappers: dict[str, int] = {}
        for type_, stacks in puts.items():
            stacks = list(stacks)
            places = Places(table, stacks)
            put = places.wrappers()
            if len({places.path(stack)[len(put) :][:1] for stack in stacks}) < _CALLERS:
                put = put[:1]  # all that a few stacks share may be much more than the put
            self._wrappers[type_] = len(put)
            for function in put:
                self._types[function].add(type_)
            if put:
                for stack in stacks:
                    self._callers[places.path(stack)[len(put) :]].add(type_)

    def around(self, put: int, type_: str) -> tuple[str, ...]:
        """Return the types whose puts a put of `type_` was inside of, the innermost first."""
        path = Places(self._table, ()).path(put)
        found: dict[str, None] = {}
        for place, (function, _) in enumerate(path):
            inside = self._types.get(function, set())
            if place > self._wrappers.get(type_, 0):
                inside = inside | self._callers.get(path[place:], set())
            found |= dict.fromkeys(sorted(inside - {type_}))
        return tuple(found)
