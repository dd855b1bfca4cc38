"""Statistics of objects that ended, to judge those that did not."""

from __future__ import annotations

import numpy as np

from tracer.aggregation.grouping import Indices
from tracer.aggregation.pairing import pair
from tracer.aggregation.tally import Tally
from tracer.model.events import CREATE_EVENT
from tracer.model.records import LIFE_BINS, LIFE_SHIFT
from tracer.model.snapshot import Records
from tracer.model.statistics import DEATH, LIFE_BIN, LIFETIME, NEVER_PUT, PAIR, BalancedStatistics


class Balance:
    """The growing form of BalancedStatistics; bounded by the distinct pairs of stacks."""

    def __init__(self) -> None:
        self._pairs = Tally(PAIR)
        self._deaths = Tally(DEATH)
        self._lifetimes = Tally(LIFETIME)
        self._lives = Tally(LIFE_BIN)

    def fold(self, events: Records, owner: Indices, create: Indices, last: Indices) -> None:
        """Fold objects that ended: their EVENTs object by object, each object's in order of time.

        `owner`: the object of each event; `create` and `last`: per object, the rows of the events that
        began and ended it.
        """
        types, births = events.view(CREATE_EVENT)["type"][create], events["stack"][create]
        self._fold_pairs(events, owner, types, births)
        deaths = np.zeros(len(create), dtype=DEATH)
        deaths["type"], deaths["create_stack"], deaths["count"] = types, births, 1
        deaths["last_stack"] = events["stack"][last]
        self._deaths.add(deaths)
        # The clocks of two processors may disagree by a little: no life is shorter than nothing.
        lived = np.maximum((events["time_ns"][last] - events["time_ns"][create]).view(np.int64), 0)
        lifetimes = np.zeros(len(create), dtype=LIFETIME)
        lifetimes["type"], lifetimes["create_stack"], lifetimes["count"] = types, births, 1
        lifetimes["sum_ns"] = lifetimes["min_ns"] = lifetimes["max_ns"] = lived
        self._lifetimes.add(lifetimes)
        lives = np.zeros(len(create), dtype=LIFE_BIN)
        lives["type"], lives["stack"], lives["count"] = types, births, 1
        lives["bin"] = np.minimum(np.frexp((lived >> (LIFE_SHIFT - 1)) | 1)[1] - 1, LIFE_BINS - 1)
        self._lives.add(lives)

    def add_pairs(self, pairs: Records) -> None:
        """Add rows of dtype PAIR that were counted before their object ended."""
        self._pairs.add(pairs)

    def statistics(self) -> BalancedStatistics:
        rows = (tally.rows() for tally in (self._pairs, self._deaths, self._lifetimes, self._lives))
        pairs, deaths, lifetimes, lives = rows
        return BalancedStatistics(pairs, deaths, lifetimes, lives=lives)

    def _fold_pairs(self, events: Records, owner: Indices, types: Records, births: Records) -> None:
        found = pair(events, owner)
        stack = events["stack"]
        taken = np.concatenate([owner[found.get], owner[found.gets], owner[found.puts]])
        pairs = np.zeros(len(taken), dtype=PAIR)
        pairs["type"], pairs["count"] = types[taken], 1
        pairs["get_stack"] = np.concatenate([stack[found.get], stack[found.gets], births[owner[found.puts]]])
        never = np.full(len(found.gets), NEVER_PUT)
        pairs["put_stack"] = np.concatenate([stack[found.put], never, stack[found.puts]])
        pairs["exact"][: len(found.exact)] = found.exact
        self._pairs.add(pairs)
