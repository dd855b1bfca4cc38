"""References that one call of a function took and gave back: what a local variable held.

A stack that a get and a put share down to a function, whose line at the get is not behind its line at the put, is one
call of that function as far as one object's events tell. What it took directly, or was handed up by what it called, it
gives back itself. Which functions hand up what they take is learnt first where there is no choice.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tracer.analysis.hand_ups import HandUps
from tracer.analysis.lives import Life, Step
from tracer.analysis.reference_sites import Path
from tracer.analysis.scaling import Floats
from tracer.model.operations import Operation

_GET, _PUT = int(Operation.GET), int(Operation.PUT)
_LEAST = 1e-9
_MOST_STEPS = 2048
_ROUNDS = 2
_HANDS_UP = 0.5
_PUTS_OWN = 0.2
"""Of a put's references, the share that the same call took: below it, the put is of what others took."""

Pair = tuple[int, int, int]
"""Row of the get, column of the put, references."""


class Activations:
    """Pairs within one call, of the lives of one type. `gets`, `puts`: paths by stack, without the wrappers."""

    def __init__(self, gets: Mapping[int, Path], puts: Mapping[int, Path]) -> None:
        self._gets, self._puts = gets, puts
        self._depth: dict[tuple[int, int], int | None] = {}
        self._learnt = HandUps()

    def learn(self, lives: Sequence[Life]) -> None:
        """Learn which functions hand up: first from puts that only one get can stand for, then from all."""
        for turn in range(1 + _ROUNDS):
            counted = HandUps()
            for life in lives:
                self._count(counted, life, self._pair(life, unambiguous=turn == 0), unambiguous=turn == 0)
            self._learnt = counted

    def local(self, life: Life) -> Floats:
        """Return how many references of each get the same call gave back at each put, shape (gets, puts)."""
        found = np.zeros((len(life.gets), len(life.puts)))
        for row, column, count in self._pair(life, unambiguous=False).pairs:
            found[row, column] += count
        return found

    def owner(self, stack: int, by_name: bool = True) -> int:
        """Return how many frames at the leaf of a get hand up what they take; `by_name`: by their names, where nothing
        is learnt."""
        path = self._gets.get(stack, ())
        if not path or self._learnt.beside[path[0]] > self._learnt.paired[path[0]]:
            return 0
        depth = 0
        while depth < len(path) - 1 and self._learnt.handing(path[depth][0], birth=False) > _HANDS_UP:
            if not by_name and not self._learnt.handed[path[depth][0]]:
                break
            depth += 1
        return depth

    def habit(self, stack: int) -> float:
        """Return the share of the references taken by a get's innermost call that one call took and gave back."""
        path = self._gets.get(stack, ())
        return self._learnt.habit(path[0]) if path else 0.0

    def _count(self, learnt: HandUps, life: Life, state: _State, unambiguous: bool) -> None:
        left = life.taken.copy()
        for row, column, count in state.pairs:
            left[row] -= count
            path, put = self._gets[life.gets[row]], self._puts[life.puts[column]]
            depth = self._depth_of(life.gets[row], life.puts[column]) or 0
            weight = count * life.objects
            for function, _ in path[:depth]:
                learnt.handed[function] += weight
            learnt.kept[path[depth][0]] += weight
            learnt.together[path[0], put[0]] += weight
            learnt.paired[path[0]] += weight
            learnt.decided[path[0]] += weight
            learnt.inside[put[0]] += weight
        for stack, count in state.outside.items():
            if put := self._puts[stack]:
                learnt.outside[put[0]] += count * life.objects
        for row, get in enumerate(life.gets):
            if not self._gets[get]:
                continue
            function, line = self._gets[get][0]
            learnt.taken[function, line] += float(life.taken[row]) * life.objects
            learnt.beside[function, line] += state.beside[row] * life.objects
            undecided = unambiguous and any(self._depth_of(get, put) is not None for put in life.puts)
            if life.remaining == 0 and not undecided:  # given back elsewhere
                learnt.kept[function] += float(left[row]) * life.objects
                learnt.decided[function, line] += float(left[row]) * life.objects

    def _depth_of(self, get: int, put: int) -> int | None:
        """Return how many calls deeper than the put's function the get is, in one call of it; None if it is not."""
        key = get, put
        if key not in self._depth:
            self._depth[key] = _depth(self._gets.get(get, ()), self._puts.get(put, ()))
        return self._depth[key]

    def _pair(self, life: Life, unambiguous: bool) -> _State:
        """Pair within one call, in order of time; `unambiguous`: only where one get is possible."""
        state = _State(life)
        if len(life.steps) > _MOST_STEPS:
            return state
        for place, (operation, stack, count) in enumerate(life.steps):
            if operation == _GET:
                state.take(state.rows[stack], count, place)
                continue
            state.puts += 1
            is_own = self._puts_own(stack)
            while count > 0:
                able = [row for row in state.free() if is_own and self._depth_of(life.gets[row], stack) is not None]
                if not able:
                    state.outside[stack] += count
                if not able or (unambiguous and len(able) > 1):
                    break
                row = max(able, key=lambda row: self._rank(state, row, stack))
                count -= state.give(row, stack, count)
                for other in state.free():
                    if state.last[other][0] == state.last[row][0] and self._is_beside(life, row, other, stack):
                        state.beside[other] += 1
        return state

    def _puts_own(self, put: int) -> bool:
        """Tell whether a put may be of what its own call took."""
        path = self._puts.get(put, ())
        return bool(path) and self._learnt.putting_own(path[0]) >= _PUTS_OWN

    def _rank(self, state: _State, row: int, put: int) -> tuple[int, int, bool, int]:
        """Rank a get: by its odds, and among about equal ones the latest, of those taken together the creation."""
        get, birth = state.life.gets[row], row == 0
        path = self._gets[get]
        odds = self._learnt.belonging(path[0], self._puts[put][0])
        for function, _ in path[: self._depth_of(get, put)]:
            odds *= self._learnt.handing(function, birth)
        after, place = state.last[row]
        return round(math.log2(max(odds, _LEAST))), after, birth, place

    def _is_beside(self, life: Life, row: int, other: int, put: int) -> bool:
        """Tell whether another reference was taken in the call that handed one up to the function of a put."""
        depth = self._depth_of(life.gets[row], put)
        if not depth or other == row:
            return False
        path, beside = self._gets[life.gets[row]], self._gets.get(life.gets[other], ())
        place = len(beside) - len(path) + depth
        return place > 0 and beside[place:] == path[depth:] and beside[place - 1][0] == path[depth - 1][0]


@dataclass
class _State:
    """What is open while the steps of a life are gone through."""

    life: Life
    pairs: list[Pair] = field(default_factory=list)
    beside: Counter[int] = field(default_factory=Counter)
    """Per row: references that were not handed up, since another one was by the same call."""
    outside: Counter[int] = field(default_factory=Counter)
    """Per stack of a put: references that no call took which the put may be part of."""
    puts: int = 0

    def __post_init__(self) -> None:
        self.rows = {stack: row for row, stack in enumerate(self.life.gets) if row}
        self._columns = {stack: column for column, stack in enumerate(self.life.puts)}
        self._open = Counter({0: round(float(self.life.taken[0]))})
        self.last = {0: (0, -1)}
        """Per row: how many puts came before the last get, and its place among the steps."""

    def free(self) -> list[int]:
        """Return the rows that have references which a caller may give back."""
        return [row for row, left in self._open.items() if left > self.beside[row]]

    def take(self, row: int, count: int, place: int) -> None:
        self._open[row] += count
        self.last[row] = self.puts, place

    def give(self, row: int, put: int, count: int) -> int:
        """Pair at most `count` references of a row; return how many."""
        given = min(count, self._open[row] - self.beside[row])
        self._open[row] -= given
        self.pairs.append((row, self._columns[put], given))
        return given


def without(life: Life, paired: Floats) -> Life:
    """Return a life without the references that are paired already: shape (gets, puts)."""
    if not paired.any():
        return life
    taken, given = paired.sum(axis=1), paired.sum(axis=0)
    steps = _less(_less(life.steps, _PUT, life.puts, given)[::-1], _GET, life.gets[1:], taken[1:])[::-1]
    return replace(life, taken=life.taken - taken, given=life.given - given, steps=steps)


def _less(steps: Sequence[Step], operation: int, stacks: Sequence[int], gone: Floats) -> tuple[Step, ...]:
    """Take so many calls of each stack out of the steps, the first ones."""
    left = defaultdict(int, zip(stacks, map(round, gone.tolist()), strict=True))
    kept: list[Step] = []
    for what, stack, count in steps:
        less = min(count, left[stack]) if what == operation else 0
        left[stack] -= less
        if count > less:
            kept.append((what, stack, count - less))
    return tuple(kept)


def _depth(get: Path, put: Path) -> int | None:
    depth = len(get) - len(put)
    if not put or depth < 0 or get[depth][0] != put[0][0] or get[depth][1] > put[0][1]:
        return None
    return depth if get[depth + 1 :] == put[1:] else None
