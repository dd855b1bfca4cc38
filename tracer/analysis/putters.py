"""The functions that put, by type: what is called inside of a put of another type is done by that object's end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from tracer.analysis.reference_sites import Places
from tracer.analysis.stacks import StackBook


class Putters:
    def __init__(self, book: StackBook, puts: Mapping[str, Iterable[int]]) -> None:
        """`puts`: the stacks of each type's puts. A function that all of them share is the type's put."""
        self._book = book
        self._types: defaultdict[str, list[str]] = defaultdict(list)
        for type_, stacks in puts.items():
            for function in Places(book, stacks).wrappers():
                self._types[function].append(type_)

    def around(self, put: int, type_: str) -> tuple[str, ...]:
        """Return the types whose puts a put of `type_` was inside of, the innermost first."""
        found: dict[str, None] = {}
        for function in self._book.get(put).keys:
            found |= dict.fromkeys(other for other in self._types.get(function, ()) if other != type_)
        return tuple(found)
