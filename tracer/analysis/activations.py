"""References that one call of a function took and gave back: what a local variable held.

A stack that a get and a put share down to a function, whose line at the get is not behind its line at the put, is one
call of that function as far as one object's events tell. What it took directly, or was handed up by what it called, it
gives back itself. Which functions hand up what they take is learnt first where there is no choice.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from tracer.analysis.hand_ups import HandUps
from tracer.analysis.lives import Life, Step
from tracer.analysis.reference_sites import Path
from tracer.analysis.scaling import Floats
from tracer.late_dataclasses import dataclass
from tracer.model.operations import Operation

_GET, _PUT = int(Operation.GET), int(Operation.PUT)
_LEAST = 1e-9
_MOST_STEPS = 2048
_ROUNDS = 2
_HANDS_UP = 0.5
_UNLIKELY = 0.1
_PUTS_OWN = 0.2
"""Of a put's references, the share that the same call took: below it, the put is of what others took."""

Pair = tuple[int, int, int]
"""Row of the get, column of the put, references."""


class Activations:
    """Pairs within one call, of the lives of one type. `gets`, `puts`: paths by stack, without the wrappers."""

    def __init__(
        self, gets: Mapping[int, Path], puts: Mapping[int, Path],
        by_slots: Callable[[int, int], float] = lambda get, put: 1.0,
        depth: Callable[[int, int], int | None] | None = None,
    ) -> None:  # fmt: skip
        """`by_slots`: how much likelier a put is of a get by the slots that both name. `depth`: how many calls deeper
        than a put's function a get is, in one call of it."""
        self._gets, self._puts, self._by_slots = gets, puts, by_slots
        self._depth_within = depth or (lambda get, put: depth_within(gets.get(get, ()), puts.get(put, ())))
        self._depth: dict[tuple[int, int], int | None] = {}
        self._learnt = HandUps()

    def learn(self, lives: Sequence[Life]) -> None:
        """Learn which functions hand up: first from puts that only one get can stand for, then from all.

        Before that what is put outside of the call that took it, where no call says otherwise.
        """
        first = self._counted(lives, unambiguous=True)
        self._learnt = HandUps(apart=first.apart, taken=first.taken)
        for turn in range(1 + _ROUNDS):
            self._learnt = self._counted(lives, unambiguous=turn == 0)

    def _counted(self, lives: Sequence[Life], unambiguous: bool) -> HandUps:
        counted = HandUps()
        for life in lives:
            self._count(counted, life, self._pair(life, unambiguous), unambiguous)
        return counted

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

    def own_share(self, put: int, here: float) -> float:
        """Return the share of a put's references that the same call took; `here`: of one object so many."""
        path = self._puts.get(put, ())
        return self._learnt.own_share(path[0], here) if path else 0.0

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
            learnt.together[path[depth], put[0]] += weight
            learnt.paired[path[0]] += weight
            learnt.decided[path[depth]] += weight
            learnt.inside[put[0]] += weight
        for stack, count in state.outside.items():
            if put := self._puts[stack]:
                learnt.outside[put[0]] += count * life.objects
        for row, stack, count in state.alone:
            if (path := self._gets[life.gets[row]]) and (put := self._puts[stack]):
                learnt.apart[path[0], put[0]] += count * life.objects
        for row, get in enumerate(life.gets):
            if not self._gets[get]:
                continue
            function, line = self._gets[get][0]
            learnt.taken[function, line] += float(life.taken[row]) * life.objects
            learnt.beside[function, line] += state.beside[row] * life.objects
            undecided = unambiguous and any(self._depth_of(get, put) is not None for put in life.puts)
            if life.remaining == 0 and not undecided:  # given back elsewhere
                learnt.elsewhere[function] += float(left[row]) * life.objects
                for call in self._gets[get]:
                    learnt.decided[call] += float(left[row]) * life.objects

    def _depth_of(self, get: int, put: int) -> int | None:
        key = get, put
        if key not in self._depth:
            self._depth[key] = self._depth_within(get, put)
        return self._depth[key]

    def _pair(self, life: Life, unambiguous: bool) -> _State:
        """Pair within one call, in order of time; `unambiguous`: only where one get is possible.

        Of an object that was put too often, a call puts at one place once for what it took since it last put there:
        else the put that no get answers would be paired with what an earlier call took, or keeps. Nor does such an
        object give back what is hardly ever given back there.
        """
        state = _State(life)
        if len(life.steps) > _MOST_STEPS:
            return state
        for place, (operation, stack, count) in enumerate(life.steps):
            if operation == _GET:
                state.take(state.rows[stack], count, place)
                continue
            state.puts += 1
            is_own = self._puts_own(stack)
            since = state.given_at.get(stack) if life.remaining < 0 else None
            while count > 0:
                free = state.free()
                able = [row for row in free if is_own and self._depth_of(life.gets[row], stack) is not None]
                able = [row for row in able if since is None or state.last[row][1] > since]
                if not able:
                    state.give_outside(free, stack, count)
                if not able or (unambiguous and len(able) > 1):
                    break
                row = max(able, key=lambda row: self._rank(state, row, stack))
                if life.remaining < 0 and self._odds(life, row, stack) < _UNLIKELY:
                    break
                others = [other for other in free if other not in able]
                if self._odds_apart(life, others, stack) > self._odds(life, row, stack):
                    state.outside[stack] += count
                    break
                count -= state.give(row, stack, count)
                state.given_at[stack] = place
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
        after, place = state.last[row]
        return round(math.log2(max(self._odds(state.life, row, put), _LEAST))), after, row == 0, place

    def _odds(self, life: Life, row: int, put: int) -> float:
        """Return how likely a put is of what this get took in the same call."""
        get, path = life.gets[row], self._gets[life.gets[row]]
        depth = self._depth_of(get, put) or 0
        odds = self._learnt.belonging(path[depth], self._puts[put][0]) * self._by_slots(get, put)
        for function, _ in path[:depth]:
            odds *= self._learnt.reaching(function, birth=row == 0)
        return odds

    def _odds_apart(self, life: Life, rows: Sequence[int], put: int) -> float:
        """Return how likely a put is of what one of these gets took outside of its call."""
        paths = [self._gets.get(life.gets[row], ()) for row in rows]
        return max((self._learnt.giving_apart(path[0], self._puts[put][0]) for path in paths if path), default=0)

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
    alone: list[tuple[int, int, int]] = field(default_factory=list)
    """Row, stack of the put, references: put outside of the call, when no other get had a reference left."""
    given_at: dict[int, int] = field(default_factory=dict)
    """Per stack of a put: where among the steps it last gave back what its call took."""
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

    def give_outside(self, free: Sequence[int], put: int, count: int) -> None:
        """Note a put of what no call took that it may be part of. `free`: the rows that it may be of."""
        self.outside[put] += count
        if len(free) == 1:
            self.alone.append((free[0], put, count))

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


def depth_within(get: Path, put: Path) -> int | None:
    """Return how many calls deeper than the put's function a get is, in one call of it; None if it is not."""
    depth = len(get) - len(put)
    if not put or depth < 0 or get[depth][0] != put[0][0] or get[depth][1] > put[0][1]:
        return None
    return depth if get[depth + 1 :] == put[1:] else None
