"""Makings of objects: what else was taken in the call that made one, and hangs on it.

A constructor makes parts of its own. Of a part that outlives the call, and was handed to nobody outside of it, the
object keeps the reference, so both are left where the object is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from tracer.analysis.groups import Indices
from tracer.analysis.reference_sites import Path
from tracer.late_dataclasses import dataclass
from tracer.model.distinct_values import distinct
from tracer.model.operations import Operation
from tracer.model.snapshot import Records

_ENOUGH = 0.5
"""Of the objects of a group, the share that must have been taken in a making of its own."""
_Key = TypeVar("_Key")
_Place = tuple[tuple[int, int], Path]
"""Process and address space, and the path of a making."""


@dataclass(frozen=True)
class Taking:
    """Where the reference was taken that objects of one group are said to lack the put of."""

    stack: int
    birth: bool
    """It is the creator's own."""
    path: Path
    kept: int
    """The frame of `path` that it came to."""
    ended: int
    """How many references ended objects took by that path."""


@dataclass(frozen=True)
class Making:
    """How objects of one group came to whoever wanted them."""

    path: Path
    """Leaf first, without the functions that handed them up."""
    ended: int
    """How many others came by it that ended."""


@dataclass(frozen=True)
class _Made:
    """Objects of one type that came by one path: how many ended, and those that are left, in order of time."""

    type: int
    ended: int
    left: Records


class Makings:
    """`objects`, `history`: of the snapshot; `owner`: of each event the row of its object, or -1."""

    def __init__(self, objects: Records, history: Records, owner: Indices) -> None:
        self._objects, self._history, self._owner = objects, history, owner

    def around(
        self, groups: Mapping[_Key, Indices], takings: Mapping[_Key, Taking], makings: Mapping[_Key, Making]
    ) -> dict[_Key, tuple[int, ...]]:
        """Return of each group the numbers of the types in whose makings its references were taken, those of objects
        that are left too; the innermost first.

        `groups`: rows of `objects`, of one type and process each.
        """
        made = self._made(groups, makings)
        places = {key: (self._of(groups[key])[1], taking.path) for key, taking in takings.items()}
        left = Counter[tuple[int, Path]]()
        for key, place in places.items():
            left[place] += len(groups[key])
        return {
            key: tuple(self._types(groups[key], taking, left[places[key]], made)) for key, taking in takings.items()
        }

    def _made(
        self, groups: Mapping[_Key, Indices], makings: Mapping[_Key, Making]
    ) -> dict[_Place, list[_Made]]:
        ended: dict[tuple[_Place, int], int] = {}
        parts: defaultdict[tuple[_Place, int], list[Indices]] = defaultdict(list)
        for key, making in makings.items():
            if making.path:
                process, type_ = self._of(groups[key])
                ended[(process, making.path), type_] = making.ended
                parts[(process, making.path), type_].append(groups[key])
        made: defaultdict[_Place, list[_Made]] = defaultdict(list)
        for (place, type_), rows in parts.items():
            left = self._objects[np.concatenate(rows)]
            made[place].append(_Made(type_, ended[place, type_], left[np.argsort(left["time_ns"])]))
        return dict(made)

    def _of(self, rows: Indices) -> tuple[tuple[int, int], int]:
        """Return the process and address space, and the type."""
        first = self._objects[rows[0]]
        return (int(first["pid"]), int(first["generation"])), int(first["type"])

    def _types(
        self, rows: Indices, taking: Taking, left: int, made: Mapping[_Place, Sequence[_Made]]
    ) -> Iterable[int]:
        """`left`: how many objects that are left lack the put of a reference that was taken there."""
        process, own = self._of(rows)
        taken = None
        for place in range(taking.kept + 1, len(taking.path)):
            for one in made.get((process, taking.path[place:]), ()):
                if one.type == own or taking.ended + left > one.ended + len(one.left):
                    continue  # what is taken oftener than those are made is no part of them
                taken = self._taken(rows, taking) if taken is None else taken
                if _in_makings(taken, one.left) >= _ENOUGH * len(rows):
                    yield one.type

    def _taken(self, rows: Indices, taking: Taking) -> Records:
        """Return the records of the births, or of the gets."""
        if taking.birth:
            return self._objects[rows]
        of_group = np.zeros(len(self._objects) + 1, dtype=bool)  # one more: of no object, -1
        of_group[rows] = True
        chosen = of_group[self._owner] & (self._history["stack"] == taking.stack)
        taken: Records = self._history[chosen & (self._history["operation"] == Operation.GET)]
        return taken


def _in_makings(taken: Records, made: Records) -> int:
    """Return how many references were taken each beside another object: before it was made, as a creation is seen when
    the constructor returns, or behind that. `made`: in order of time."""
    before = behind = 0
    for thread in distinct(made["tid"]).tolist():
        times = made["time_ns"][made["tid"] == thread]
        place = np.searchsorted(times, taken["time_ns"][taken["tid"] == thread])
        before += len(distinct(place[place < len(times)]))
        behind += len(distinct(place[place > 0]))
    return max(before, behind)
