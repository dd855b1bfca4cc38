"""Kin of a type: others whose references are taken, or given back, by the same lines, as those of classes of one base.

What a line does with the objects of one class it does with those of another. So what is not seen of a class that has
few objects is learnt from the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import cached_property

from tracer.analysis.lives import Life, courses
from tracer.analysis.reference_sites import Call, Places
from tracer.analysis.stacks import SymbolizedStacks
from tracer.late_dataclasses import dataclass
from tracer.model.snapshot import Records
from tracer.model.statistics import NEVER_PUT, BalancedStatistics

_MOST_LIVES = 256
"""Of others, the most frequent first: more take longer than they teach."""


@dataclass(frozen=True)
class Kin:
    """Of other types than one what is learnt for it: lives of objects that ended, and their pairs by order."""

    lives: Sequence[Life] = ()
    pairs: Records = field(default_factory=lambda: BalancedStatistics().pairs)


NO_KIN = Kin()


class KinOfTypes:
    """Which types share lines, of gets or of puts; beyond what was inlined from a header."""

    def __init__(self, table: SymbolizedStacks, statistics: BalancedStatistics) -> None:
        self._statistics = statistics
        self._places = Places(table, ())

    def of(self, type_: int, outstanding: Sequence[Life]) -> Kin:
        """Return what is learnt of others for a type. `outstanding`: lives of its own."""
        pairs = self._statistics.pairs
        own = pairs[pairs["type"] == type_]
        stacks = {*own["put_stack"].tolist(), *own["get_stack"].tolist()}
        lines = self._lines((*stacks, *(stack for life in outstanding for stack in (*life.gets[1:], *life.puts))))
        rows = sorted({row for line in lines for row in self._rows[line]})
        numbers = sorted({number for line in lines for number in self._numbers[line]})
        lives = [life for other, life in (self._lives[number] for number in numbers) if other != type_]
        found = pairs[rows]
        return Kin(sorted(lives, key=lambda life: -life.objects)[:_MOST_LIVES], found[found["type"] != type_])

    @cached_property
    def _rows(self) -> defaultdict[Call, list[int]]:
        """By line, rows of the pairs."""
        pairs = self._statistics.pairs
        stacks = zip(pairs["get_stack"].tolist(), pairs["put_stack"].tolist(), strict=True)
        return self._by_line(stacks)

    @cached_property
    def _lives(self) -> list[tuple[int, Life]]:
        """Each distinct life, with its type."""
        steps = self._statistics.courses
        types = dict.fromkeys(steps["type"].tolist())
        return [(type_, life) for type_ in types for life in courses(steps, type_)]

    @cached_property
    def _numbers(self) -> defaultdict[Call, list[int]]:
        """By line, numbers of the lives."""
        return self._by_line((*life.gets[1:], *life.puts) for _, life in self._lives)

    def _by_line(self, all_stacks: Iterable[Iterable[int]]) -> defaultdict[Call, list[int]]:
        found = defaultdict[Call, list[int]](list)
        for number, stacks in enumerate(all_stacks):
            for line in self._lines(stacks):
                found[line].append(number)
        return found

    def _lines(self, stacks: Iterable[int]) -> set[Call]:
        paths = (self._places.from_caller(stack) for stack in stacks if stack != NEVER_PUT)
        return {path[0] for path in paths if path}
