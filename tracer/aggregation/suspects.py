"""The whole history of objects that ended and were put once more, and of those that had their memory before."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracer.aggregation.grouping import Indices, in_time_order
from tracer.model.distinct_values import is_in
from tracer.model.events import EVENT, IDENTITY, MEMORY, ErrorKind
from tracer.model.snapshot import Records

MOST_OBJECTS = 64
_PREDECESSORS = 3


class Suspects:
    """Keeps the EVENTs of objects whose over-put is known when they are folded; of the first few only.

    A put that comes after an object's end may meet another one that has the memory now. So the last few that had the
    memory of an accused object are kept as well, if they are folded with it.
    """

    def __init__(self, most: int = MOST_OBJECTS) -> None:
        self._most = most
        self._accused: set[tuple[int, ...]] = set()
        self._kept: list[Records] = []

    def accuse(self, errors: Records) -> None:
        """Remember which objects were put too often. `errors`: ERROR_EVENTs."""
        over_puts = errors[(errors["error"] == ErrorKind.OVER_PUT) & (errors["serial"] != 0)]
        for identity in over_puts[list(IDENTITY)][: self._most].tolist():
            if len(self._accused) >= self._most:
                return
            self._accused.add(identity)

    def take(self, events: Records, owner: Indices, creates: Records) -> npt.NDArray[np.bool_]:
        """Keep the events of accused objects; return which of the objects those are, shape (len(creates),).

        `events`: EVENTs object by object; `owner`: the object of each; `creates`: per object its create.
        """
        accused = np.zeros(len(creates), dtype=bool)
        if not self._accused:
            return accused
        serials = np.array([identity[-1] for identity in self._accused], dtype=np.uint32)
        for place in np.flatnonzero(is_in(creates["serial"], serials)).tolist():
            if creates[list(IDENTITY)][place].item() in self._accused:
                accused[place] = True
        if bool(accused.any()):
            kept = accused | _predecessors(creates, np.flatnonzero(accused))
            self._kept.append(events.take(np.flatnonzero(kept[owner])))
        return accused

    def events(self) -> Records:
        """Return the EVENTs kept, in order of time."""
        return in_time_order(np.concatenate([np.zeros(0, dtype=EVENT), *self._kept]))


def _predecessors(creates: Records, accused: Indices) -> npt.NDArray[np.bool_]:
    """Return which objects are the last few that had the memory of an accused one before it, shape (len(creates),)."""
    found = np.zeros(len(creates), dtype=bool)
    times, memory = creates["time_ns"], creates[list(MEMORY)]
    for place in accused.tolist():
        same = np.flatnonzero((creates["address"] == creates["address"][place]) & (times < times[place]))
        same = same[memory[same] == memory[place]]
        found[same[np.argsort(times[same], kind="stable")][-_PREDECESSORS:]] = True
    return found
