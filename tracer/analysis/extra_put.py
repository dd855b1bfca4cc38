"""The extra put of an object: the one whose get is missing."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

import numpy as np

from tracer.analysis.activations import without
from tracer.analysis.evidence import Evidence
from tracer.analysis.groups import Indices, sorted_runs
from tracer.analysis.habits import likely
from tracer.analysis.history import owners
from tracer.analysis.lives import Life, courses, life
from tracer.analysis.put_rates import PutRates, PutTooOften
from tracer.analysis.reasons import place_of
from tracer.analysis.representatives import last_in_first_out, order_of_steps
from tracer.analysis.scaling import Floats
from tracer.analysis.siblings import Siblings
from tracer.analysis.whole_places import by_whole_puts
from tracer.late_dataclasses import dataclass
from tracer.model.distinct_values import is_in
from tracer.model.events import CREATE_EVENT, IDENTITY, MEMORY, ErrorKind
from tracer.model.operations import Operation
from tracer.model.snapshot import Records

_SURE = 0.8
_WELL = 5
_LATE = {ErrorKind.OVER_PUT: Operation.PUT, ErrorKind.USE_AFTER_ZERO: Operation.GET}
"""What was done to an object that had ended."""
_MOST_LIVES = 64


@dataclass(frozen=True)
class ExtraPut:
    stack: int
    reason: str


@dataclass(frozen=True)
class _Broken:
    """The life of an object that was put too often, and what order pairs of it."""

    type: int
    life: Life
    in_order: Floats
    used: bool
    """Whether references were taken after its end: of those some puts may be, which are too many in another way."""
    before: int
    """How many objects that had its memory before it `life` is of as well."""


class ExtraPuts:
    """Finds the put that was probably one too many, from what is known of the object before its end."""

    def __init__(self, evidence: Evidence, errors: Records) -> None:
        self._evidence = evidence
        self._errors = errors
        self._history = evidence.snapshot.error_history
        owner = owners(self._history, self._errors)
        self._order, self._bounds = sorted_runs(np.where(owner < 0, len(self._errors), owner), len(self._errors) + 1)
        self._siblings: dict[int, Siblings] = {}
        self._rates: dict[int, PutRates] = {}

    def of(self, row: int) -> ExtraPut | None:
        """Judge the error in a row of `errors`; None for other errors, and where nothing tells."""
        if self._errors[row]["error"] != ErrorKind.OVER_PUT:
            return None
        found = self._life(row)
        if found is None or found.life.remaining >= 0:
            return None
        siblings = self._of_type(found.type)
        one, in_order, of_others = _beyond_calls(siblings, found.life, found.in_order)
        rates = self._rates_of(found.type)
        extra = rates.of(one) * _known_by_numbers(siblings, found) * siblings.surplus(one)
        impartial = likely(siblings.weights(one) * of_others, one, extra)[2]
        if impartial.max() >= -_SURE * one.remaining:
            column = int(impartial.argmax())
            strong = self._is_sure(rates, one, column, int(self._errors[row]["stack"]), found.before)
            return self._said(siblings, found, column, strong)
        informed = likely(siblings.weights(one, in_order) * of_others, one, extra)[2] * _by_numbers(siblings, found)
        return self._said(siblings, found, int(informed.argmax()), False)

    def _life(self, row: int) -> _Broken | None:
        """Return what the object of an error went through; None where its birth is not known."""
        same = self._same(row)
        rows = [self._order[self._bounds[one] : self._bounds[one + 1]] for one in same.tolist()]
        events = self._history[np.sort(np.concatenate(rows))]
        creates = np.flatnonzero(events["operation"] == Operation.CREATE)
        if len(creates) == 0:
            return None
        create, errors = events.view(CREATE_EVENT)[creates[0]], self._errors[same]
        before = self._before(create)
        events = np.concatenate([before, events])
        one, in_order = _whole_life(events, errors)
        if one.remaining >= 0:  # what got it after its end is not what was put after it
            one, in_order = _whole_life(events, errors[errors["error"] == ErrorKind.OVER_PUT])
        used = bool((errors["error"] == ErrorKind.USE_AFTER_ZERO).any())
        return _Broken(int(create["type"]), one, in_order, used, len(np.unique(before["serial"])))

    def _before(self, create: np.void) -> Records:
        """Return the events of the objects of its type that had the memory of one before it.

        Where one of those ended too early, the put that came too late was made of what has the memory now.
        """
        history = self._history
        in_memory = history[list(MEMORY)] == create[list(MEMORY)]
        rows = np.flatnonzero(in_memory & (history["time_ns"] < create["time_ns"]))
        rows = rows[~is_in(history["serial"][rows], self._errors["serial"])]  # not those with errors of their own
        creates = history[rows].view(CREATE_EVENT)
        of_type = creates[(creates["operation"] == Operation.CREATE) & (creates["type"] == create["type"])]
        return history[rows[is_in(history["serial"][rows], of_type["serial"])]]

    def _same(self, row: int) -> Indices:
        """Return the rows of all gets and puts of the same object that came after its end."""
        identities = self._errors[list(IDENTITY)]
        late = np.isin(self._errors["error"], list(_LATE))
        same: Indices = np.flatnonzero((identities == identities[row]) & late)
        return same

    @staticmethod
    def _is_sure(rates: PutRates, one: Life, column: int, late: int, before: int) -> bool:
        """Tell whether the put that came too late is another one, or known well from objects that ended so.

        It is mostly the put of who held the object still: where objects `before` had its memory, of one of those, too.
        """
        put = one.puts[column]
        return put != late or (rates.known(put) >= _WELL and not before)

    def _rates_of(self, type_: int) -> PutRates:
        if type_ not in self._rates:
            siblings = self._of_type(type_)
            broken = []
            for one in (one for one in self._all if one.type == type_):
                rest, _, of_others = _beyond_calls(siblings, one.life, one.in_order)
                numbers = _known_by_numbers(siblings, one)
                broken.append(PutTooOften(rest, siblings.weights(rest) * of_others, numbers))
            healthy = courses(self._evidence.snapshot.balanced.courses, type_)
            self._rates[type_] = PutRates(siblings.put_line, healthy, broken)
        return self._rates[type_]

    def _of_type(self, type_: int) -> Siblings:
        if type_ not in self._siblings:
            broken = [one.life for one in self._all if one.type == type_]
            statistics = self._evidence.snapshot.balanced
            objects = self._objects[type_]
            self._siblings[type_] = Siblings(self._evidence.stacks, statistics, type_, [], objects, broken)
        return self._siblings[type_]

    @cached_property
    def _objects(self) -> Counter[int]:
        """How many objects of each type were put too often."""
        over_puts = self._errors[self._errors["error"] == ErrorKind.OVER_PUT]
        _, first = np.unique(over_puts[list(IDENTITY)], return_index=True)
        objects = Counter[int]()
        for type_, alike in over_puts[["broken_type", "represented"]][first].tolist():
            objects[type_] += max(1, alike)
        return objects

    @cached_property
    def _all(self) -> list[_Broken]:
        """The lives of some objects that were put too often."""
        over_put = np.flatnonzero(self._errors["error"] == ErrorKind.OVER_PUT)
        _, first = np.unique(self._errors[list(IDENTITY)][over_put], return_index=True)
        lives = (self._life(row) for row in over_put[first[:_MOST_LIVES]].tolist())
        return [one for one in lives if one is not None]

    @staticmethod
    def _said(siblings: Siblings, found: _Broken, column: int, strong: bool) -> ExtraPut:
        one = found.life
        stack, given = one.puts[column], round(float(one.given[column]))
        source = siblings.taken_at(stack)
        if source is None:
            return ExtraPut(stack, "no object that ended well was put there")
        taken = round(sum(one.taken[row] for row, get in enumerate(one.gets) if siblings.same_get(get, source)))
        place = place_of(siblings.said_of(source))
        if taken == 0 and not found.before:
            return ExtraPut(stack, f"other objects take at {place} what is put there; this one did not")
        said = f"it gives back what is taken at {place}: {taken:,} taken here, {given:,} put"
        if found.before:
            said += f", with {found.before} that had this memory before"
        is_counted = strong and given > taken
        return ExtraPut(stack, said if is_counted else f"{said}; judged by order and nearness alone")


def _beyond_calls(siblings: Siblings, one: Life, in_order: Floats) -> tuple[Life, Floats, Floats]:
    """Return what is left to be judged without what one call of a function took and gave back itself; what order pairs
    of it; and how likely each of its puts is of what others took.

    Not where all of its puts are in such pairs: then one of those is too many.
    """
    local = siblings.local(one)
    rest = without(one, local)
    if rest.remaining >= 0 or not rest.given.any():
        return one, in_order, np.ones(len(one.puts))
    return rest, order_of_steps(rest), siblings.of_others(rest, local.sum(axis=0))


def _by_numbers(siblings: Siblings, one: _Broken) -> Floats:
    """Return how likely each put of a life is one too many, as far as its numbers of gets and puts tell."""
    return np.ones(len(one.life.puts)) if one.used else by_whole_puts(one.life, siblings.depth, siblings.put_line)


def _known_by_numbers(siblings: Siblings, one: _Broken) -> Floats:
    """Return the same, or ones where too few objects are known: what one call gave back itself is among the numbers."""
    return _by_numbers(siblings, one) if siblings.enough else np.ones(len(one.life.puts))


def _whole_life(events: Records, errors: Records) -> tuple[Life, Floats]:
    """Return the life with the gets and puts that came after its end, and what order pairs of it.

    The first create is the birth. What another one gave counts as taken there.
    """
    place = int(np.flatnonzero(events["operation"] == Operation.CREATE)[0])
    birth, counted = events[place], np.delete(events, place)
    counted = counted[np.isin(counted["operation"], (Operation.CREATE, Operation.GET, Operation.PUT))]
    errors = errors[np.argsort(errors["time_ns"], kind="stable")]
    late = [_LATE[ErrorKind(error)] for error in errors["error"].tolist()]
    is_create = counted["operation"] == Operation.CREATE
    operation = np.append(np.where(is_create, Operation.GET, counted["operation"]), np.array(late)).astype(np.uint8)
    count = np.append(np.where(is_create, counted["count"], 1), np.ones(len(errors))).astype(np.int64)
    stack = np.append(counted["stack"], errors["stack"])
    initial = int(birth["count"])
    one = life(operation, stack, initial, int(birth["stack"]), count=count)
    found = np.zeros((len(one.gets), len(one.puts)))
    births = Counter[int]()
    for get, put in last_in_first_out(operation, np.append(counted["tid"], errors["tid"])):
        if get is None and births[0] >= initial:
            continue
        births[0] += get is None
        row = 0 if get is None else 1 + one.gets[1:].index(int(stack[get]))
        found[row, one.puts.index(int(stack[put]))] += 1
    return one, found
