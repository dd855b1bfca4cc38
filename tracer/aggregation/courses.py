"""Courses: what ended objects went through from create to end, step by step."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracer.aggregation.grouping import Indices
from tracer.aggregation.tally import changes
from tracer.model.distinct_values import is_in
from tracer.model.events import CREATE_EVENT
from tracer.model.hashing import Hashes, mixed
from tracer.model.operations import Operation
from tracer.model.snapshot import Records
from tracer.model.statistics import STEP

MOST_STEPS = 64
MOST_OF_TYPE = 256
MOST_COURSES = 8192


class Courses:
    """The first distinct courses of each type, with how many objects went through each.

    Courses longer than `most_steps` are passed over, and new ones once `most_of_type` of their type
    or `most` in all are known, so that memory and time are bounded.
    """

    def __init__(
        self, most_steps: int = MOST_STEPS, most_of_type: int = MOST_OF_TYPE, most: int = MOST_COURSES
    ) -> None:
        self._most_steps, self._most_of_type, self._most = most_steps, most_of_type, most
        self._hashes: Hashes = np.zeros(0, dtype=np.uint64)
        self._index: Indices = np.zeros(0, dtype=np.int64)
        self._objects: list[int] = []
        self._steps: list[Records] = []
        self._of_type: dict[int, int] = {}

    def fold(self, events: Records, owner: Indices, create: Indices, usable: npt.NDArray[np.bool_]) -> None:
        """Count the courses of ended objects: their EVENTs object by object, each object's in order of time.

        `owner`: the object of each event; `create`: per object, the row of its create; `usable`: per object,
        whether its events are all there.
        """
        starts = np.flatnonzero(changes([owner]))
        lengths = np.diff(np.append(starts, len(events)))
        hashes = _hashes(events, starts, owner)
        rows = np.flatnonzero(usable & (lengths <= self._most_steps) & (create == starts))
        distinct, first, counts = np.unique(hashes[rows], return_index=True, return_counts=True)
        place = np.searchsorted(self._hashes, distinct)
        known = np.zeros(len(distinct), dtype=bool)
        inside = place < len(self._hashes)
        known[inside] = self._hashes[place[inside]] == distinct[inside]
        for index, count in zip(self._index[place[known]].tolist(), counts[known].tolist(), strict=True):
            self._objects[index] += count
        fresh = np.flatnonzero(~known)
        fresh = fresh[np.argsort(first[fresh], kind="stable")]
        self._learn(events, starts, lengths, rows[first[fresh]], distinct[fresh], counts[fresh])

    def rows(self) -> Records:
        """Return rows of dtype STEP, course by course."""
        if not self._steps:
            return np.zeros(0, dtype=STEP)
        steps = np.concatenate(self._steps)
        steps["objects"] = np.array(self._objects, dtype=np.uint64)[steps["course"]]
        return steps

    def _learn(
        self, events: Records, starts: Indices, lengths: Indices, objects: Indices, hashes: Hashes, counts: Indices
    ) -> None:
        """Take in courses not known yet, as far as there is room."""
        types = events.view(CREATE_EVENT)["type"][starts[objects]]
        full = [type_ for type_, number in self._of_type.items() if number >= self._most_of_type]
        added = []
        for place in np.flatnonzero(~is_in(types, np.array(full, dtype=np.uint64))).tolist():
            type_ = int(types[place])
            if len(self._steps) >= self._most:
                break
            if self._of_type.get(type_, 0) >= self._most_of_type:
                continue
            start = int(starts[objects[place]])
            steps = _steps(events[start : start + int(lengths[objects[place]])], len(self._steps))
            self._of_type[type_] = self._of_type.get(type_, 0) + 1
            self._steps.append(steps)
            self._objects.append(int(counts[place]))
            added.append(place)
        self._hashes = np.concatenate([self._hashes, hashes[added]])
        order = np.argsort(self._hashes)
        index = np.concatenate([self._index, np.arange(len(self._steps) - len(added), len(self._steps))])
        self._hashes, self._index = self._hashes[order], index[order]


def _steps(events: Records, course: int) -> Records:
    steps = np.zeros(len(events), dtype=STEP)
    steps["course"], steps["type"] = course, events.view(CREATE_EVENT)["type"][0]
    steps["operation"], steps["stack"] = events["operation"], events["stack"]
    steps["count"] = np.where(events["operation"] == Operation.CREATE, events["count"], 1)
    return steps


def _hashes(events: Records, starts: Indices, owner: Indices) -> Hashes:
    """Return a hash per object over the order of its operations and their stacks, its type and first count."""
    creates = events["operation"] == Operation.CREATE
    position = (np.arange(len(events)) - starts[owner]).astype(np.uint64)
    state = (events["stack"] ^ position << np.uint64(8)) + events["operation"]
    state[creates] += mixed(events.view(CREATE_EVENT)["type"][creates] + events["count"][creates].astype(np.uint32))
    sums: Hashes = np.add.reduceat(mixed(state), starts)
    return sums
