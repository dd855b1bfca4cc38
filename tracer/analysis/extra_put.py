"""The extra put of an object: the one whose get is missing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tracer.analysis.activations import without
from tracer.analysis.evidence import Evidence
from tracer.analysis.groups import Indices, sorted_runs
from tracer.analysis.habits import likely
from tracer.analysis.history import owners
from tracer.analysis.lives import Life, life
from tracer.analysis.reasons import place_of
from tracer.analysis.representatives import last_in_first_out, order_of_steps
from tracer.analysis.scaling import Floats
from tracer.analysis.siblings import Siblings
from tracer.model.events import CREATE_EVENT, IDENTITY, ErrorKind
from tracer.model.operations import Operation
from tracer.model.snapshot import Records

_SURE = 0.8
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


class ExtraPuts:
    """Finds the put that was probably one too many, from what is known of the object before its end."""

    def __init__(self, evidence: Evidence, errors: Records) -> None:
        self._evidence = evidence
        self._errors = errors
        self._history = evidence.snapshot.error_history
        owner = owners(self._history, self._errors)
        self._order, self._bounds = sorted_runs(np.where(owner < 0, len(self._errors), owner), len(self._errors) + 1)
        self._siblings: dict[int, Siblings] = {}

    def of(self, row: int) -> ExtraPut | None:
        """Judge the error in a row of `errors`; None for other errors, and where nothing tells."""
        if self._errors[row]["error"] != ErrorKind.OVER_PUT:
            return None
        found = self._life(row)
        if found is None or found.life.remaining >= 0:
            return None
        siblings = self._of_type(found.type)
        one, in_order, of_others = _beyond_calls(siblings, found.life, found.in_order)
        impartial = likely(siblings.weights(one) * of_others, one)[2]
        if impartial.max() >= _SURE:
            return self._said(siblings, found.life, int(impartial.argmax()), True)
        informed = likely(siblings.weights(one, in_order) * of_others, one)[2]
        return self._said(siblings, found.life, int(informed.argmax()), False)

    def _life(self, row: int) -> _Broken | None:
        """Return what the object of an error went through; None where its birth is not known."""
        same = self._same(row)
        rows = [self._order[self._bounds[one] : self._bounds[one + 1]] for one in same.tolist()]
        events = self._history[np.sort(np.concatenate(rows))]
        creates = np.flatnonzero(events["operation"] == Operation.CREATE)
        if len(creates) == 0:
            return None
        one, in_order = _whole_life(events, int(creates[0]), self._errors[same])
        if one.remaining >= 0:  # what got it after its end is not what was put after it
            puts = same[self._errors["error"][same] == ErrorKind.OVER_PUT]
            one, in_order = _whole_life(events, int(creates[0]), self._errors[puts])
        return _Broken(int(events.view(CREATE_EVENT)["type"][creates[0]]), one, in_order)

    def _same(self, row: int) -> Indices:
        """Return the rows of all gets and puts of the same object that came after its end."""
        identities = self._errors[list(IDENTITY)]
        late = np.isin(self._errors["error"], list(_LATE))
        same: Indices = np.flatnonzero((identities == identities[row]) & late)
        return same

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
        """The lives of objects that were put too often: of those with distinct stacks, some."""
        over_put = np.flatnonzero(self._errors["error"] == ErrorKind.OVER_PUT)
        _, first = np.unique(self._errors["stack"][over_put], return_index=True)
        lives = (self._life(row) for row in over_put[first[:_MOST_LIVES]].tolist())
        return [one for one in lives if one is not None]

    @staticmethod
    def _said(siblings: Siblings, one: Life, column: int, strong: bool) -> ExtraPut:
        stack, given = one.puts[column], round(float(one.given[column]))
        source = siblings.taken_at(stack)
        if source is None:
            return ExtraPut(stack, "no object that ended well was put there")
        taken = round(sum(one.taken[row] for row, get in enumerate(one.gets) if siblings.same_get(get, source)))
        place = place_of(siblings.said_of(source))
        if taken == 0:
            return ExtraPut(stack, f"other objects take at {place} what is put there; this one did not")
        said = f"it gives back what is taken at {place}: {taken:,} taken here, {given:,} put"
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


def _whole_life(events: Records, create: int, errors: Records) -> tuple[Life, Floats]:
    """Return the life with the gets and puts that came after its end, and what order pairs of it."""
    counted = events[(events["operation"] == Operation.GET) | (events["operation"] == Operation.PUT)]
    errors = errors[np.argsort(errors["time_ns"], kind="stable")]
    late = [_LATE[ErrorKind(error)] for error in errors["error"].tolist()]
    operation = np.append(counted["operation"], np.array(late, dtype=np.uint8))
    stack = np.append(counted["stack"], errors["stack"])
    birth, initial = int(events["stack"][create]), int(events["count"][create])
    one = life(operation, stack, initial, birth)
    found = np.zeros((len(one.gets), len(one.puts)))
    births = Counter[int]()
    for get, put in last_in_first_out(operation, np.append(counted["tid"], errors["tid"])):
        if get is None and births[0] >= initial:
            continue
        births[0] += get is None
        row = 0 if get is None else 1 + one.gets[1:].index(int(stack[get]))
        found[row, one.puts.index(int(stack[put]))] += 1
    return one, found
