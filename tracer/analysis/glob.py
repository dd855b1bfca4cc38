"""Patterns in which `*` stands for anything: matched piece by piece, so that many stars cost no more than one.

The leftmost place of each piece is as good as any later one for those that follow, so none is ever tried again.
"""

from __future__ import annotations

import re
from functools import cached_property

from tracer.late_dataclasses import dataclass
from tracer.late_patterns import late_pattern

LONGEST = 4096
"""Characters of a pattern. A piece with `?` costs its length times that of the text."""
_STARS = late_pattern(r"\*+")


@dataclass(frozen=True)
class Glob:
    """`begins`, `ends`: whether the pattern is bound to the beginning and the end of a text. `one`: `?` stands for any
    character, else for itself."""

    pattern: str
    begins: bool = True
    ends: bool = True
    one: bool = False

    @cached_property
    def _pieces(self) -> tuple[str, ...]:
        return tuple(_STARS.split(self.pattern))

    @cached_property
    def _wild(self) -> dict[str, re.Pattern[str]]:
        pieces = (piece for piece in self._pieces if self.one and "?" in piece)
        return {piece: re.compile(re.escape(piece).replace(r"\?", "."), re.DOTALL) for piece in pieces}

    def matches(self, text: str) -> bool:
        at, pieces, end = 0, list(self._pieces), len(text)
        if self.begins:
            first = pieces.pop(0)
            if not self._stands_at(first, text, 0):
                return False
            at = len(first)
            if not pieces:
                return not self.ends or at == end
        if self.ends:
            last = pieces.pop()
            end -= len(last)
            if end < at or not self._stands_at(last, text, end):
                return False
        for piece in pieces:
            found = self._find(piece, text, at, end)
            if found < 0:
                return False
            at = found + len(piece)
        return True

    def _stands_at(self, piece: str, text: str, at: int) -> bool:
        wild = self._wild.get(piece)
        return text.startswith(piece, at) if wild is None else wild.match(text, at) is not None

    def _find(self, piece: str, text: str, at: int, end: int) -> int:
        wild = self._wild.get(piece)
        if wild is None:
            return text.find(piece, at, end)
        found = wild.search(text, at, end)
        return -1 if found is None else found.start()
