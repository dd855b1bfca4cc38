"""Siblings of an object, those of its type, and what they did with references taken at the same places."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tracer.analysis.activations import Activations, depth_within, without
from tracer.analysis.function_words import makes_by_name
from tracer.analysis.habits import LEAST_NEVER, Pair, PlacedLife, learn
from tracer.analysis.kin import NO_KIN, Kin
from tracer.analysis.lives import Life, courses
from tracer.analysis.makings import Making
from tracer.analysis.reference_sites import Level, Path, Places, common
from tracer.analysis.scaling import Floats
from tracer.analysis.slots import Keys, Slots
from tracer.analysis.stacks import SymbolizedStacks
from tracer.analysis.views import PutPlace, View
from tracer.model.findings import FrameList
from tracer.model.frames import Frame
from tracer.model.snapshot import Records
from tracer.model.statistics import NEVER_PUT, BalancedStatistics

_LEAST = 1e-4
_NEARNESS = 3.0
_MOST_NEAR = 5
_ONE_CALL = 3.0
"""How much likelier a function itself gives back what it took than any other that is as near."""
_MOST_APART = 6
_DISTANCE = 0.8
_GUESS = 0.02
_NO_ORDER = 0.03
_OWN_ORDER = 0.5
"""What order counts at least where one call of a function may have done both: what it called took in between."""
_MOST_OUTSTANDING = 64
_OUTSTANDING_WEIGHT = 0.05
"""What an outstanding life counts beside one that ended: it is known to lack something."""
_BY_ORDER = 0.5
"""How much likelier a reference is given back where order says so."""
_HABIT = 0.95
_LEAST_SEEN = 5
_OWN_HABIT = 0.98
"""How much less likely a reference is given back elsewhere, if those of its place are by the call that took them."""
_MORE_THAN_FILLED, _NOT_MORE = 4.0, 0.5
"""How much likelier a put is one too many where a slot is emptied oftener than it is filled, and where it is not."""


class Siblings:
    """The habits of a type, learnt from its ended objects and, with less weight, from those outstanding."""

    def __init__(
        self, table: SymbolizedStacks, statistics: BalancedStatistics, type_: int, outstanding: Sequence[Life],
        objects: int = 0, broken: Sequence[Life] = (), kin: Kin = NO_KIN,
    ) -> None:  # fmt: skip
        """`outstanding`: distinct lives; `broken`: of which nothing is learnt, but which are asked for. `objects`: how
        many there are that lived as either. `kin`: what is learnt of other types."""
        pairs = np.concatenate([statistics.pairs[statistics.pairs["type"] == type_], kin.pairs])
        self._deaths = statistics.deaths[statistics.deaths["type"] == type_]
        alive = [replace(life, objects=_OUTSTANDING_WEIGHT) for life in outstanding[:_MOST_OUTSTANDING]]
        lives = [*courses(statistics.courses, type_), *kin.lives, *alive]
        all_ = (*lives, *outstanding, *broken)
        self._births = {*self._deaths["create_stack"].tolist(), *(life.gets[0] for life in all_)}
        taken = {*pairs["get_stack"].tolist(), *(stack for life in all_ for stack in life.gets[1:])}
        given = {*pairs["put_stack"].tolist(), *(stack for life in all_ for stack in life.puts)}
        self._birth_places = Places(table, self._births, wrapped=False)
        given -= {int(NEVER_PUT)}
        self._taken, self._given = taken, given
        gets, puts = ([life.gets[1:] for life in all_], [life.puts for life in all_])
        self._get_places = Places(table, taken - self._births, together=gets, opposite=given, births=self._births)
        self.put_places = Places(table, given, together=puts, opposite=taken, births=self._births)
        self._table = table
        self._ends: dict[Level, defaultdict[Hashable, list[tuple[int, int]]]] = {}
        self._near: dict[Pair, float] = {}
        self._made: Counter[Path] = Counter()
        self._trunk = self._shared_by_all(taken | given - {int(NEVER_PUT)})
        self.enough = objects + sum(life.objects for life in (*lives, *outstanding)) >= _LEAST_SEEN
        """Whether there are enough objects to learn which functions hand up what they take."""
        self._slots = Slots(table, self._caller, self._births)
        self._activations = self._learnt_activations([*lives, *outstanding], broken)
        self._views = self._all_views(lives, pairs)

    def local(self, life: Life) -> Floats:
        """Return how many references of each get the same call of a function gave back, shape (gets, puts)."""
        return self._activations.local(life)

    def _learnt_activations(self, lives: Sequence[Life], broken: Sequence[Life]) -> Activations:
        """Learn which functions hand up what they take; the places of gets are where the references came to."""
        births = {stack: self._birth_places.from_caller(stack) for stack in self._births}
        all_ = (*lives, *broken)
        gets = {stack: self._get_places.from_caller(stack) for life in all_ for stack in life.gets[1:]}
        puts = {stack: self.put_places.from_caller(stack) for life in all_ for stack in life.puts}
        depth = self.depth if self.enough else self._depth_by_code
        learnt = Activations(gets | births, puts, self._slots.likelihood, depth)
        if not self.enough:
            return learnt
        learnt.learn(lives)
        for places, stacks in ((self._birth_places, births), (self._get_places, gets)):
            for stack in stacks:
                places.hand_up(stack, learnt.owner(stack))
        return learnt

    def weights(self, life: Life, in_order: Floats | None = None) -> Floats:
        """Return how likely a reference of each get is given back at each put, shape (gets, puts).

        Without `in_order` only what objects show by what they took and gave back; with it (pairs of this life
        last in, first out, same shape) also order, and how near to each other the calls stand.
        """
        weights = np.full((len(life.gets), len(life.puts)), _LEAST)
        for view in self._views:
            gets, puts = self._numbers(view, life)
            for row, get in enumerate(gets):
                shares = [view.share((get, put), impartial=in_order is None) for put in puts]
                weights[row] += view.trust(get) * np.array(shares, dtype=np.float64)
        elsewhere = 1 - _OWN_HABIT * np.array([self._activations.habit(get) for get in life.gets])[:, None]
        elsewhere = elsewhere * self._by_slots(life)
        if in_order is None:
            return weights * elsewhere
        near = np.array([[self._nearness(get, put) for put in life.puts] for get in life.gets])
        near = near.reshape(weights.shape)
        weights += _GUESS * near / np.maximum(near.sum(axis=1, keepdims=True), 1e-12)
        return weights * elsewhere * (1 + _BY_ORDER * self._order(life, in_order) / np.maximum(life.given, 1))

    def never(self, life: Life) -> Floats:
        """Return how much likelier a reference of each get is never given back, as those that are left show; shape
        (gets)."""
        shares = [[view.never(get) for get in self._numbers(view, life)[0]] for view in self._views]
        likelier: Floats = 1 + np.sum(shares, axis=0) / LEAST_NEVER
        return likelier

    def unemptied(self, get: int, freed: Keys) -> int | None:
        """Return how far inside of a struct the member is that a get fills, if it is one of a block that was `freed`
        without a put, or no put of the type is seen to empty such a member; None elsewhere."""
        return self._slots.unemptied(get, self._given, freed)

    def tells_slot(self, get: int) -> bool:
        """Tell whether the code says where such a reference is kept."""
        return self._slots.tells(get)

    def _by_slots(self, life: Life) -> Floats:
        """Return how much likelier each pair of a get and a put is by the slots that both name, shape (gets, puts)."""
        found = [[self._slots.likelihood(get, put) for put in life.puts] for get in life.gets]
        return np.array(found, dtype=np.float64).reshape(len(life.gets), len(life.puts))

    def surplus(self, life: Life) -> Floats:
        """Return how much likelier each put is one too many, by how many gets fill the slot that it empties; shape
        (puts)."""
        same = self._by_slots(life) > 1
        found = np.ones(len(life.puts))
        for column in range(len(life.puts)):
            rows = same[:, column]
            taken = float(life.taken[rows].sum())
            if taken:
                is_more = float(life.given[same[rows].any(axis=0)].sum()) > taken
                found[column] = _MORE_THAN_FILLED if is_more else _NOT_MORE
        return found

    def same_slots(self, life: Life) -> npt.NDArray[np.bool_]:
        """Tell of each pair of a get and a put whether both may name one slot, shape (gets, puts)."""
        same: npt.NDArray[np.bool_] = self._by_slots(life) >= 1
        return same

    def holding(self, life: Life, slots: Keys) -> Floats:
        """Return how much likelier a reference of each get is still kept, by the slots that hold the object, where any
        is known; shape (gets)."""
        found = [self._slots.holding(get, slots) if slots else 1.0 for get in life.gets]
        return np.array(found, dtype=np.float64)

    def of_others(self, life: Life, local: Floats) -> Floats:
        """Return how likely each put of a life is of what others than its own call took, shape (puts).

        `local`: per put, what one call of a function took and gave back there.
        """
        shares = [self._activations.own_share(put, here) for put, here in zip(life.puts, local.tolist(), strict=True)]
        return 1 - _OWN_HABIT * np.array(shares, dtype=np.float64)

    def _order(self, life: Life, in_order: Floats) -> Floats:
        """Return the pairs by order, but for puts of functions that give back what they took themselves.

        What they called in between took references that outlive the call: last in, first out would pair those.
        """
        own = np.array([[self._is_one_call(get, put) for put in life.puts] for get in life.gets], dtype=bool)
        own = own.reshape(in_order.shape)
        both = np.minimum(life.taken[:, None], life.given[None, :])
        return np.where(own, both, np.where(own.any(axis=0), 0.0, in_order))

    def seen(self, get: int, birth: bool) -> tuple[Level, int]:
        """Return how many references ended objects took at a place, and at which level the places agree."""
        for view in self._views:
            number = view.gets.get(self.get_key(get, birth, view.level))
            if number is not None and view.seen[number]:
                return view.level, view.seen[number]
        return Level.FUNCTION, 0

    def habitual(self, get: int, birth: bool) -> bool:
        """Tell whether order and nearness agree on where such references are given back.

        Then nearly all of at least five are given back at one place, as far as order tells, and no other is as near.
        """
        for view in self._views:
            number = view.gets.get(self.get_key(get, birth, view.level))
            if number is None or view.seen[number] < _LEAST_SEEN:
                continue
            pairs = view.pairs_of(number)
            best = max(pairs, key=view.informed_share, default=None)
            if best is None or view.informed_share(best) < _HABIT:
                return False
            nearest = self._nearness(get, view.put_example[best[1]])
            others = [put for put in view.puts.values() if put != best[1]]
            return all(self._nearness(get, view.put_example[put]) < nearest for put in others)
        return False

    def put_at(self, get: int, birth: bool, level: Level, impartial: bool) -> list[PutPlace]:
        """Return where references taken there are given back, the most usual place first.

        `impartial`: going only by what objects took and gave back, not by order.
        """
        view = next(view for view in self._views if view.level >= level)
        number = view.gets.get(self.get_key(get, birth, view.level))
        pairs = [] if number is None else view.pairs_of(number)
        shares = {pair[1]: view.share(pair, impartial) for pair in pairs}
        total = sum(shares.values()) or 1
        found = [PutPlace(view.put_example[put], share / total) for put, share in shares.items() if share >= total / 20]
        return sorted(found, key=lambda place: (-place.share, place.stack))

    def taken_at(self, put: int) -> int | None:
        """Return a stack where references are usually taken that are given back at `put`; None if none ended there."""
        for view in self._views:
            number = view.puts.get(self.put_places.key(put, view.level))
            amounts = {pair[0]: view.informed_share(pair) * view.seen[pair[0]]
                       for pair in {*view.informed.given, *view.in_order} if pair[1] == number}  # fmt: skip
            if any(amounts.values()):
                return view.get_example[max(amounts, key=lambda get: amounts[get])]
        return None

    def said_of(self, get: int, by_name: bool = True) -> Frame | None:
        """Return the frame that tells a get, or a birth, from others; `by_name`: functions may be told to hand up by
        their names alone."""
        places = self._birth_places if get in self._births else self._get_places
        return places.telling(get, None if by_name else self._activations.owner(get, by_name=False))

    def _caller(self, stack: int) -> Frame | None:
        """Return the frame that wanted a get, a birth or a put, beyond wrappers."""
        if stack in self._births:
            return self._birth_places.caller(stack)
        return (self._get_places if stack in self._taken else self.put_places).caller(stack)

    def came_to(self, get: int) -> tuple[Path, int]:
        """Return the path of a get, or a birth, and the frame of it that the reference came to."""
        places = self._birth_places if get in self._births else self._get_places
        return places.path(get), places.place(get)

    def making(self, birth: int) -> Making:
        """Return how an object came to whoever wanted it, and how many came so that ended."""
        if not self._made:
            for _, stack, _, count in self._deaths.tolist():
                self._made[self._made_for(stack)] += count
        path = self._made_for(birth)
        return Making(path, self._made[path])

    def _made_for(self, birth: int) -> Path:
        """Return the calls by which an object came to whoever wanted it: past those that hand it up, as is learnt, and
        are called like that."""
        path, learnt = self._birth_places.path(birth), self._activations.owner(birth, by_name=False)
        made = next((place for place, (function, _) in enumerate(path) if not makes_by_name(function)), len(path))
        return path[min(made, learnt) :]

    def same_get(self, one: int, other: int) -> bool:
        """Tell whether two references were taken by the same line."""
        births = one in self._births, other in self._births
        return self.get_key(one, births[0], Level.CALL) == self.get_key(other, births[1], Level.CALL)

    def put_line(self, put: int) -> Hashable:
        """Return what puts of the same line have in common."""
        return self.put_places.key(put, Level.CALL)

    def put_path(self, put: int) -> Hashable:
        """Return what puts by the same way have in common."""
        return self.put_places.key(put, Level.PATH)

    def deaths(self, birth: int) -> dict[FrameList, int]:
        """Return where healthy objects that were created at the same place ended, and how many."""
        for level in Level:
            same = self._deaths_at(level).get(self._birth_places.key(birth, level))
            if same:
                ends: defaultdict[FrameList, int] = defaultdict(int)
                for last, count in same:
                    ends[self._table.get(last).frames] += count
                return dict(ends)
        return {}

    def _deaths_at(self, level: Level) -> Mapping[Hashable, list[tuple[int, int]]]:
        """Return where objects ended and how many, by where they were created."""
        found = self._ends.get(level)
        if found is None:
            found = self._ends[level] = defaultdict(list)
            for _, birth, last, count in self._deaths.tolist():
                found[self._birth_places.key(birth, level)].append((last, count))
        return found

    def get_key(self, stack: int, birth: bool, level: Level) -> Hashable:
        if birth or stack in self._births:
            return "birth", self._birth_places.key(stack, level)
        return self._get_places.key(stack, level)

    def _shared_by_all(self, stacks: set[int]) -> int:
        """Return how many of the outermost functions all stacks share."""
        paths = [self._get_path(stack) for stack in stacks]
        return min((common(paths[0], path) for path in paths[1:]), default=0)

    def _all_views(self, lives: Sequence[Life], pairs: Records) -> list[View]:
        views: list[View] = []
        local = [self._activations.local(life) for life in lives]
        rest = [without(life, paired) for life, paired in zip(lives, local, strict=True)]
        for level in Level:
            view = self._view(level, list(zip(rest, local, strict=True)), pairs)
            finer = views[-1] if views else None
            if finer is not None and (len(finer.gets), len(finer.puts)) == (len(view.gets), len(view.puts)):
                continue  # each place lies within one of the next level: as many are the same
            view.impartial = learn(view.placed, self._slot_prior_of(view), view.certain)
            view.informed = learn(view.placed, self._prior_of(view), view.certain)
            views.append(view)
        return views

    def _view(self, level: Level, lives: Sequence[tuple[Life, Floats]], pairs: Records) -> View:
        """`lives`: each without what the same call of a function took and gave back, and that."""
        view = View(level)
        for _, get_stack, put_stack, count, exact in pairs.tolist():
            get = view.get(self.get_key(get_stack, get_stack in self._births, level), get_stack)
            view.seen[get] += count
            if put_stack != NEVER_PUT:
                pair = get, view.put(self.put_places.key(put_stack, level), put_stack)
                view.in_order[pair] += count
                if exact:
                    view.certain[pair] += exact
        ended: Counter[int] = Counter()
        for _, birth, _, count in self._deaths.tolist():
            ended[view.get(self.get_key(birth, True, level), birth)] += count
        view.seen |= ended  # a delete gives back what the creator held, without a pair
        for life, local in lives:
            gets = [view.get(self.get_key(stack, row == 0, level), stack) for row, stack in enumerate(life.gets)]
            puts = [view.put(self.put_places.key(stack, level), stack) for stack in life.puts]
            for row, column in np.argwhere(local).tolist():
                view.certain[gets[row], puts[column]] += float(local[row, column]) * life.objects
            view.placed.append(PlacedLife(life, tuple(gets), tuple(puts)))
        return view

    def _numbers(self, view: View, life: Life) -> tuple[list[int], list[int]]:
        gets = [self.get_key(stack, row == 0, view.level) for row, stack in enumerate(life.gets)]
        puts = [self.put_places.key(stack, view.level) for stack in life.puts]
        return [view.gets.get(key, -1) for key in gets], [view.puts.get(key, -1) for key in puts]

    def _prior_of(self, view: View) -> Callable[[Pair], float]:
        def prior(pair: Pair) -> float:
            get, put = view.get_example[pair[0]], view.put_example[pair[1]]
            order = max(view.share_in_order(pair), _OWN_ORDER if self._is_one_call(get, put) else 0)
            return self._nearness(get, put) * (_NO_ORDER + order) * self._slots.likelihood(get, put)

        return prior

    def _slot_prior_of(self, view: View) -> Callable[[Pair], float]:
        return lambda pair: self._slots.likelihood(view.get_example[pair[0]], view.put_example[pair[1]])

    def _nearness(self, get: int, put: int) -> float:
        """Return how near two calls stand: the more outer frames they share, the likelier they belong together."""
        near = self._near.get((get, put))
        if near is None:
            taken, given = self._get_path(get), self.put_places.path(put)
            shared = common(taken, given)
            apart = min(len(taken) + len(given) - 2 * shared, _MOST_APART)
            near = _NEARNESS ** max(0, min(shared - self._trunk, _MOST_NEAR)) * _DISTANCE**apart
            if self._is_one_call(get, put):
                near *= _ONE_CALL
            self._near[get, put] = near
        return near

    def _is_one_call(self, get: int, put: int) -> bool:
        """Tell whether both may be done by one and the same call of a function, as a local variable's are."""
        places = self._birth_places if get in self._births else self._get_places
        taken, given = places.from_caller(get), self.put_places.from_caller(put)
        return bool(taken and given) and taken[0][0] == given[0][0] and taken[1:] == given[1:]

    def depth(self, get: int, put: int) -> int | None:
        """Return how many calls deeper than a put's function a get is, in one call of it; None if it is not."""
        places = self._birth_places if get in self._births else self._get_places
        depth = depth_within(taken := places.from_caller(get), given := self.put_places.from_caller(put))
        if not depth or taken[depth] == given[0]:  # of one call, which may have ended by a jump to the put
            return depth
        keeps = self._slots.keeper(get)
        return depth if keeps is None or depth <= places.frames_from_caller(get, keeps) else None

    def _depth_by_code(self, get: int, put: int) -> int | None:
        """Return the same, where the code says that a put is of what that very call made or took."""
        return self.depth(get, put) if self._slots.is_one_variable(get, put) else None

    def _get_path(self, stack: int) -> Path:
        return (self._birth_places if stack in self._births else self._get_places).path(stack)
